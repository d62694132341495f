package guard

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// A key is what a command writes to the registry of Windows: parts of keys and names, of
// which a shell drops the backslashes, and what they do.
type key struct {
	part  string
	also  []string // one of them, if there are any
	value int      // what the value has to be
	does  detector.Set
}

// Values of keys.
const (
	anything = iota
	zero     // the value is 0
	notZero
)

var keys = [...]key{
	{"imagefileexecutionoptions", []string{"debugger", "globalflag", "verifierdlls"}, anything, detector.Persistence},
	{"silentprocessexit", nil, anything, detector.Persistence},
	{"commandprocessor", []string{"autorun"}, anything, detector.Persistence},
	{"clsid", []string{"inprocserver32", "localserver32", "treatas", "scriptleturl"}, anything, detector.Persistence},
	{"accessibilityats", nil, anything, detector.Persistence},
	{"appcompatflags", []string{"custom", "installedsdb"}, anything, detector.Persistence},
	{"winlogon", []string{"shell", "userinit", "notify", "autoadminlogon"}, anything, detector.Persistence},
	{"appinit_dlls", nil, anything, detector.Persistence}, {"appcertdlls", nil, anything, detector.Persistence}, {"autodialdll", nil, anything, detector.Persistence}, {"clxdllpath", nil, anything, detector.Persistence},
	{"shellopencommand", nil, anything, detector.Persistence}, {"installedcomponents", []string{"stubpath"}, anything, detector.Persistence}, {"printmonitors", nil, anything, detector.Persistence},
	{"controllsa", []string{"securitypackages", "notificationpackages", "authenticationpackages"}, anything, detector.Persistence},
	{"errorreportinghangs", nil, anything, detector.Persistence}, {"terminalserveraddins", nil, anything, detector.Persistence}, {"currentversionrunonceex", nil, anything, detector.Persistence},
	{"userinitmprlogonscript", nil, anything, detector.Persistence}, {"microsoftnetsh", nil, anything, detector.Persistence}, {"timeproviders", []string{"dllname"}, anything, detector.Persistence},
	{"sessionmanager", []string{"bootexecute", "setupexecute"}, anything, detector.Persistence}, {"scrnsave.exe", nil, anything, detector.Persistence}, {"startup-path", nil, anything, detector.Persistence},
	{"currentcontrolsetservices", []string{"imagepath", "servicedll", "failurecommand"}, anything, detector.Persistence},
	{"fdenytsconnections", nil, zero, detector.Persistence}, {"localaccounttokenfilterpolicy", nil, notZero, detector.Persistence},

	{"windowsdefender", []string{"disable", "submitsamples"}, notZero, detector.ProtectionOff}, {"windowsdefender", []string{"exclusions"}, anything, detector.ProtectionOff},
	{"windowsdefender", []string{"tamperprotection", "spynetreporting", "enabled"}, zero, detector.ProtectionOff},
	{"enablefirewall", nil, zero, detector.ProtectionOff}, {"runasppl", nil, zero, detector.ProtectionOff}, {"enablelua", nil, zero, detector.ProtectionOff},
	{"consentpromptbehavioradmin", nil, zero, detector.ProtectionOff}, {"promptonsecuredesktop", nil, zero, detector.ProtectionOff}, {"uacdisablenotify", nil, notZero, detector.ProtectionOff},
	{"wmiautologger", nil, zero, detector.ProtectionOff}, {"winevtchannels", []string{"enabled"}, zero, detector.ProtectionOff}, {"winevtchannels", []string{"channelaccess"}, anything, detector.ProtectionOff},
	{"eventlog", []string{"customsd", "channelaccess"}, anything, detector.ProtectionOff}, {"amsienable", nil, zero, detector.ProtectionOff}, {"fdb00e52-a214-4aa1-8fba-4357bb0072ec", nil, anything, detector.ProtectionOff},
	{"etwenabled", nil, zero, detector.ProtectionOff}, {"hypervisorenforcedcodeintegrity", nil, zero, detector.ProtectionOff}, {"deviceguard", []string{"enablevirtualization", "lsacfgflags"}, zero, detector.ProtectionOff},
	{"systemrestore", []string{"disable"}, notZero, detector.ProtectionOff}, {"scriptblocklogging", nil, zero, detector.ProtectionOff}, {"modulelogging", nil, zero, detector.ProtectionOff},
	{"uselogoncredential", nil, notZero, detector.ProtectionOff}, {"disablerestrictedadmin", nil, zero, detector.ProtectionOff}, {"smartscreen", []string{"off"}, anything, detector.ProtectionOff}, {"vbawarnings", nil, notZero, detector.ProtectionOff},
}

// registry returns what a command does that writes to the registry of Windows.
func registry(name string, args []shell.Field) (does detector.Set) {
	switch strings.ToLower(name) {
	case "reg":
		if !strings.EqualFold(verb(args, 0), "add") {
			return 0
		}
	case "set-itemproperty", "new-itemproperty", "new-item", "sp":
	default:
		return 0
	}
	const longest = 2 << 10
	text := shell.Join(args)
	text = squeeze.Replace(strings.ToLower(text[:min(len(text), longest)]))
	if !strings.Contains(text, "hk") {
		return 0
	}
	for i := range keys {
		k := &keys[i]
		if !strings.Contains(text, k.part) || len(k.also) > 0 && !shell.HasAny(text, k.also...) {
			continue
		}
		if isZero := writesZero(text); k.value == anything || isZero == (k.value == zero) {
			does |= k.does
		}
	}
	return does
}

var squeeze = strings.NewReplacer(`\`, "", " ", "", `"`, "", "'", "", "/reg_dword", "")

// writesZero reports whether the value that is written is 0.
func writesZero(text string) bool {
	for _, option := range [...]string{"/d0", "-value0", "-value:0"} {
		if _, rest, ok := strings.Cut(text, option); ok && (rest == "" || strings.IndexByte("/-", rest[0]) >= 0 || strings.HasPrefix(rest, "x0")) {
			return true
		}
	}
	return false
}
