package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.yaml.in/yaml/v3"
)

// TestSecretNeverPrints prints a secret in every way that this program's
// libraries offer, alone and inside other values, unexported fields included.
func TestSecretNeverPrints(t *testing.T) {
	const value = "hunter2"
	s := newSecret(value)
	inside := struct {
		Secret  Secret
		Pointer *Secret
		List    []Secret
		Map     map[string]Secret
		Keys    map[Secret]int
		Any     any
		hidden  Secret
	}{s, &s, []Secret{s}, map[string]Secret{"a": s}, map[Secret]int{s: 1}, s, s}

	outputs := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10.3s"} {
		outputs["fmt "+verb] = fmt.Sprintf(verb, s)
		outputs["fmt "+verb+" inside"] = fmt.Sprintf(verb, inside)
	}
	outputs["error"] = fmt.Errorf("logging in with %v: %w", s, errors.New(fmt.Sprint(s))).Error()
	outputs["concatenation of texts"] = s.String()
	text, err := json.Marshal(inside)
	outputs["json"] = string(text) + fmt.Sprint(err)
	text, err = yaml.Marshal(inside)
	outputs["yaml"] = string(text) + fmt.Sprint(err)
	var log strings.Builder
	logger := NewLogger(&log, Values{})
	logger.Error("with fields", zap.Any("any", s), zap.Stringer("stringer", s), zap.Reflect("inside", inside),
		zap.Any("map", inside.Map), zap.Any("list", inside.List))
	logger.Sugar().Errorw("sugared", "secret", s, "inside", inside)
	logger.Sugar().Errorf("formatted %v %+v", s, inside)
	outputs["zap"] = log.String()

	for name, out := range outputs {
		if strings.Contains(out, value) || strings.Contains(strings.ToLower(out), fmt.Sprintf("%x", value)) {
			t.Errorf("%s prints the secret: %s", name, out)
		}
		if !strings.Contains(strings.ReplaceAll(out, `\u003c`, "<"), "<secret") {
			t.Errorf("%s does not show that there is a secret: %s", name, out)
		}
	}
}
