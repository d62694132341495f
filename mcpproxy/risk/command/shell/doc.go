// Package shell follows text as a shell would run it, without running anything.
//
// A Shell reads a text with the grammar of Bash, mksh or POSIX, whichever accepts
// it first, and goes through its commands in their order. It knows the values
// that the text itself gives to variables, parameters, functions, aliases and
// files, and what its commands print where that is known: so it knows the words
// of each command as the shell would expand them. A Field is one word; where a
// part of it is not known, Hole stands in its place. A Stream is what is known of
// a command's input or output.
//
// The builtins of shells are judged here, and what shells do with texts: eval,
// sh -c, a script that the text wrote, a here-document, a pipe into a shell. All
// other programs are judged by Programs, which get the expanded words and may
// give back texts that the program would run.
//
// All that is found is a detector.Set, which only grows. Both branches of a
// condition run, and loops run twice, since the second turn sees what the first
// assigned. Afterwards a variable is what either branch made of it; where one did
// not set it, an earlier text may have, and then it is still taken for the known
// value in arguments, but not in a command's place. What decides which command runs and is not known is Opaque: a
// variable in the command's place, unknown text that is piped into a shell, and
// text that no grammar accepts although it has a word that matters.
//
// The text is hostile. Each step takes from a budget, which bounds the time; the
// text that exceeds it is Opaque, like one that nests too deep.
//
// The files, from the top: doc, shell, statement, call, builtin, invoke, expand,
// variable, file, state, parameter, expansion, flags, field, stream, limit.
package shell
