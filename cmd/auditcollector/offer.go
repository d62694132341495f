package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"auditproxy/cmd/internal/letters"
	"auditproxy/cmd/internal/receivers"
	"auditproxy/collector/retention"
	"auditproxy/collector/store"
	"auditproxy/schemas/escape"

	"github.com/spf13/cobra"
)

const (
	offerWait = time.Second // a shell does not say that it waits
	offerMost = 100         // words
)

// offer returns a function that offers a shell the words of the configuration and the
// store, of which a command takes so many; negative: any number. It waits for neither, and
// starts no engine.
func (a *app) offer(takes int, words func(ctx context.Context, cfg config, s *store.Store, add func(cobra.Completion))) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if takes >= 0 && len(args) >= takes {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), offerWait)
		defer cancel()
		var mu sync.Mutex
		var list []cobra.Completion // guarded by mu
		go func() {                 // what it waits for may not end; the program ends soon
			defer cancel()
			cfg, err := a.load()
			if err != nil {
				return
			}
			s, err := cfg.store()
			if err != nil {
				return
			}
			defer s.Close()
			words(ctx, cfg, s, func(word cobra.Completion) {
				mu.Lock()
				defer mu.Unlock()
				if len(list) < offerMost && !slices.Contains(list, word) {
					list = append(list, word)
				}
			})
		}()
		<-ctx.Done()
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(list), cobra.ShellCompDirectiveNoFileComp
	}
}

// receiverNames are the names of configured receivers and, if the store answers, of those
// that got records.
func receiverNames(ctx context.Context, cfg config, s *store.Store, add func(cobra.Completion)) {
	specs, _ := cfg.receiverSpecs(time.Now())
	for _, spec := range specs {
		add(spec.Name)
	}
	if cfg.values.String("otlp.endpoint") != "" {
		add(receivers.OTLPName)
	}
	marks, _ := cfg.exportTables(s, "").Marks(ctx)
	for _, m := range marks {
		add(m.Receiver)
	}
}

// holdIDs are the ids of the holds in force, with what they keep.
func holdIDs(ctx context.Context, _ config, s *store.Store, add func(cobra.Completion)) {
	holds, _ := retention.Holds(ctx, s.DB(), false)
	for _, h := range holds {
		add(cobra.CompletionWithDesc(h.ID.String(), escape.Text(h.String())))
	}
}

// letterPlaces are the places of the dead letters that wait, with their reasons.
func letterPlaces(ctx context.Context, _ config, s *store.Store, add func(cobra.Completion)) {
	found, _ := s.Letters(ctx, store.LetterFilter{Limit: offerMost})
	for _, l := range found {
		add(cobra.CompletionWithDesc(letters.Place(l.Source), l.Reason))
	}
}
