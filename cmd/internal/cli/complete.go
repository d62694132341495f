package cli

import "github.com/spf13/cobra"

// CompleteFlags makes a shell offer the values of AddFlags' flags, on root and
// its commands.
func CompleteFlags(root *cobra.Command, keys []Key) {
	for _, k := range keys {
		words, files := k.Choices, cobra.ShellCompDirectiveNoFileComp
		switch {
		case k.Kind == Path:
			files = cobra.ShellCompDirectiveDefault
		case k.Kind == Bool:
			words = []string{"true", "false"}
		}
		// It fails for a key without a flag, which needs none.
		_ = root.RegisterFlagCompletionFunc(k.Flag(), cobra.FixedCompletions(words, files))
	}
}
