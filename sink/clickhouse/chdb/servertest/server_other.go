//go:build !linux

package servertest

// IfServer does nothing: there are no servers here.
func IfServer() {}
