package proof

import "context"

// Turn is one turn of Run.
func (j *Job) Turn(ctx context.Context) error {
	_, err := j.turn(ctx)
	return err
}
