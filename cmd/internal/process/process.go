// Package process measures and confines the processes that tests, benchmarks
// and the demo start.
package process
