package approval

import (
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A rule says whose answers count for a proxy. Members of groups are looked up
// when an answer comes; a static program reads /etc/passwd and /etc/group.
type rule struct {
	names    []string // as they were given
	users    []int
	groups   []int
	sameUser bool
}

// maxApprovers is how many approvers there may be.
const maxApprovers = 256

// checkNames refuses names that could do something at a terminal, or that are
// too many. They may come with a question.
func checkNames(approvers []string) error {
	if len(approvers) > maxApprovers {
		return fmt.Errorf("there are %d approvers, at most %d are possible: use a group", len(approvers), maxApprovers)
	}
	for i, name := range approvers {
		if len(name) == 0 || len(name) > 256 || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }) {
			return fmt.Errorf("approver %d is not the name of a user or group", i+1)
		}
	}
	return nil
}

// newRule looks up names that must exist.
func newRule(approvers []string, sameUser bool) (rule, error) {
	r := rule{names: approvers, sameUser: sameUser}
	if err := checkNames(approvers); err != nil {
		return r, err
	}
	var bad []error
	for _, name := range approvers {
		group, isGroup := strings.CutPrefix(name, "%")
		var id int
		var err error
		if isGroup {
			id, err = groupID(group)
			r.groups = append(r.groups, id)
		} else {
			id, err = userID(name)
			r.users = append(r.users, id)
		}
		if err != nil {
			bad = append(bad, fmt.Errorf("approver %q: %w", name, err))
		}
	}
	return r, errors.Join(bad...)
}

func userID(name string) (int, error) {
	if id, err := parseID(name); err == nil {
		return id, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return 0, errors.New("there is no such user; groups start with %, and a user that /etc/passwd does not have is named by its id")
	}
	return parseID(u.Uid)
}

func groupID(name string) (int, error) {
	if id, err := parseID(name); err == nil {
		return id, nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return 0, errors.New("there is no such group; one that /etc/group does not have is named by its id")
	}
	return parseID(g.Gid)
}

func parseID(text string) (int, error) {
	id, err := strconv.ParseUint(text, 10, 32)
	if err == nil && id == 1<<32-1 {
		err = strconv.ErrRange // chown(2) has it as no user
	}
	return int(id), err
}

// allows returns an error unless the answer of a user counts for a proxy that
// runs as another, or the same.
func (r rule) allows(uid, proxy int) error {
	switch {
	case uid == proxy && !r.sameUser:
		return fmt.Errorf("%s runs the agent, and approval.same_user is false: %s", userName(uid), r.describe(proxy))
	case uid == 0 && proxy != 0, len(r.names) == 0 && uid == proxy, slices.Contains(r.users, uid):
		return nil
	}
	if len(r.groups) > 0 {
		u, err := user.LookupId(strconv.Itoa(uid))
		var unknown user.UnknownUserIdError
		if errors.As(err, &unknown) {
			return fmt.Errorf("the groups of user id %d cannot be looked up: %s", uid, r.describe(proxy))
		} else if err != nil {
			return fmt.Errorf("looking up user id %d: %w", uid, err)
		}
		ids, err := u.GroupIds()
		if err != nil {
			return fmt.Errorf("looking up the groups of %s: %w", u.Username, err)
		}
		for _, gid := range r.groups {
			if slices.Contains(ids, strconv.Itoa(gid)) {
				return nil
			}
		}
	}
	return fmt.Errorf("%s is not an approver: %s", userName(uid), r.describe(proxy))
}

// describe says whose answers count.
func (r rule) describe(proxy int) string {
	var who []string
	for _, name := range r.names {
		if id, err := userID(name); err == nil && id == proxy && !r.sameUser {
			continue
		}
		if group, ok := strings.CutPrefix(name, "%"); ok {
			name = "members of " + group
		}
		who = append(who, name)
	}
	if len(r.names) == 0 && r.sameUser && proxy != 0 {
		who = append(who, proxyName(proxy))
	}
	if proxy != 0 || r.sameUser && len(r.names) == 0 {
		who = append(who, "root")
	}
	text := strings.Join(slices.Compact(who), ", ") + " may answer"
	if len(who) == 0 {
		text = "nobody may answer"
	}
	if !r.sameUser {
		text += ", but not " + proxyName(proxy)
	}
	return text
}

// proxyName is the name of a proxy's user, which may not be known.
func proxyName(uid int) string {
	if uid < 0 {
		return "the user who runs the agent"
	}
	return userName(uid)
}

// userName is the name of a user, or the id where it has none.
func userName(uid int) string {
	id := strconv.Itoa(uid)
	if u, err := user.LookupId(id); err == nil && u.Username != "" {
		return u.Username
	}
	return id
}
