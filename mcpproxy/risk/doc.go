// Package risk says what a tool call could do, and what its arguments do. It
// performs no I/O.
//
// An Assessor has the operator's configuration. Tool compiles the definition of
// a tool, an element of the server's answer to tools/list, once; where there is
// none, the name alone. Assess reads the clear arguments of a call.
//
// The category of a tool is an override, or else the maximum of its explicit
// annotations, the verbs of its name, those of the first sentence of its
// description, the shape of its schema, and a known tier. If none of these but
// an annotation says anything, it is Execute at least: an annotation is the
// server's word about itself, and never lowers.
//
// Arguments are judged by the name that holds them, at any depth, in any case:
// as commands, paths, addresses or environment variables. The schema and the
// configuration can add to that. Operations lists are calls of their own, see
// audit.Operations; strings that some servers read as JSON are read too. What is
// too deep, too large or cannot be read is Opaque, never clean.
//
// A Result has words of fixed lists and the paths of arguments, never a part of
// a value. detectors.md is the list of detectors.
//
// Package command judges the text of commands, package target paths and
// addresses, package environment the names of variables. The words and their
// bits are in package detector.
//
// The files, from the top: doc, assess, walk, pieces, program, lookup, position, tool, special, classify,
// verbs, words, config, result, schema, argument, json, category.
package risk
