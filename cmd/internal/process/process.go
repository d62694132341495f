// Package process measures and confines the processes that tests, benchmarks
// and the demo start.
//
// The files, from the top: process_linux, process_other, process.
package process
