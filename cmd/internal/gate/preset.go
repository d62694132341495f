package gate

import "fmt"

func preset(name string) ([]byte, error) {
	return nil, fmt.Errorf("reading preset %q: there is none", name)
}
