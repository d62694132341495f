package proof

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"auditproxy/schemas/evidence"
	"auditproxy/sink/clickhouse"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"
)

// Errors of Prove.
var (
	ErrNotFound = errors.New("there is no such record")
	// ErrShort means that only a short record is here, in place of one that Kafka refused.
	ErrShort = errors.New("only a short record is here, in place of one that Kafka refused: prove the whole one with auditproxy prove on its host")
)

// Prove returns the proof of a record, without a log. It returns ErrNotFound, or
// evidence.ErrNotSigned if no checkpoint covers the record. ClickHouse finds it by
// its index of ids, and hashes the session's other records on all processors: someone
// waits for it. Of a long session it hashes those near the first record, this one and the
// checkpoint; of the others verification stored what a proof needs.
func (s *Source) Prove(ctx context.Context, record uuid.UUID) (proof *evidence.RecordProof, err error) {
	var session string
	var seq uint64
	var versions uint64 // of the whole record, if that is here
	var short uint8
	find := fmt.Sprintf("SELECT any(session_id), any(seq), uniqExact(session_id, seq, payload_hash), JSONHas(evidence, 'stands_for') AS short FROM %s.events PREWHERE record_id = '%s' GROUP BY short ORDER BY short LIMIT 1", s.DB.Name(), record)
	err = s.query(ctx, "looking for the record", find, func(rows driver.Rows) error {
		return rows.Scan(&session, &seq, &versions, &short)
	})
	switch {
	case err != nil:
		return nil, err
	case versions == 0:
		return nil, ErrNotFound
	case versions > 1:
		return nil, errors.New("there are two versions of the record: see auditcollector verify")
	case short != 0:
		return nil, ErrShort
	}
	lines, err := s.linesOfProof(ctx, session, seq)
	if err != nil {
		return nil, err
	}
	stored, err := s.subtrees(ctx, session, lines[len(lines)-1].seq/evidence.SubtreeWidth)
	if err != nil {
		return nil, err
	}
	proof, err = s.prove(ctx, session, lines, stored)
	if err != nil && len(stored) > 0 {
		// What is stored may be wrong. The records alone decide whether there is a proof.
		return s.prove(ctx, session, lines, nil)
	}
	return proof, err
}

// prove makes the proof from those lines, the leaves between them, and subtrees, of which
// some may be here.
func (s *Source) prove(ctx context.Context, session string, lines []numberedLine, subtrees []evidence.Hash) (*evidence.RecordProof, error) {
	const width = evidence.SubtreeWidth
	record, end := lines[len(lines)-2].seq, lines[len(lines)-1]
	prover := evidence.NewProver(record)
	known := min(uint64(len(subtrees)), end.seq/width) * width
	isKnown := func(from uint64) bool { return from > 0 && from/width != record/width && from < known }
	for next := uint64(0); next < end.seq; {
		if isKnown(next) {
			prover.AddSubtree(subtrees[next/width])
			next += width
			continue
		}
		to := next
		for to < known && !isKnown(to) {
			to += width
		}
		if to >= known {
			to = end.seq
		}
		err := s.eachLeaf(ctx, session, next, to, func(seq uint64, leaf evidence.Hash) error {
			if seq != lines[0].seq {
				prover.AddLeaf(leaf)
				return nil
			}
			line := lines[0].line
			lines = lines[1:]
			_, err := prover.Add(line)
			return err
		})
		if err != nil {
			return nil, err
		}
		next = to
	}
	return prover.Add(end.line)
}

// subtrees returns the roots of the session's first subtrees, at most so many, as far as
// verification stored them. Of the first alone no proof has a use.
func (s *Source) subtrees(ctx context.Context, session string, most uint64) (roots []evidence.Hash, err error) {
	if most < 2 {
		return nil, nil
	}
	sql := fmt.Sprintf("SELECT arraySlice(subtrees, 1, %d) FROM %s.verifications WHERE session_id = %s ORDER BY length(subtrees) DESC LIMIT 1", most, s.DB.Name(), quote(session))
	err = s.query(ctx, "reading what verification stored of the record's session", sql, func(rows driver.Rows) error {
		var list []string
		if err := rows.Scan(&list); err != nil {
			return err
		}
		roots = make([]evidence.Hash, len(list))
		for i, root := range list {
			copy(roots[i][:], root)
		}
		return nil
	})
	return roots, err
}

// A numberedLine is the line of a record with that number.
type numberedLine struct {
	seq  uint64
	line []byte
}

// linesOfProof returns the lines that a proof needs: session_start, the record, and the
// first checkpoint that covers it.
func (s *Source) linesOfProof(ctx context.Context, session string, seq uint64) (lines []numberedLine, err error) {
	sql := strings.NewReplacer("${database}", s.DB.Name(), "${session}", quote(session), "${seq}", fmt.Sprint(seq)).Replace(`
SELECT seq, raw FROM ${database}.events WHERE session_id = ${session} AND (seq IN (0, ${seq}) OR kind = 'checkpoint' AND seq > ${seq})
ORDER BY seq, JSONHas(evidence, 'stands_for') LIMIT 1 BY seq LIMIT 3`)
	err = s.query(ctx, "reading what a proof has of the record's session", sql, func(rows driver.Rows) error {
		var one numberedLine
		var raw string
		err := rows.Scan(&one.seq, &raw)
		one.line = []byte(raw)
		lines = append(lines, one)
		return err
	})
	switch n := len(lines); {
	case err != nil:
		return nil, err
	case n == 0 || lines[0].seq != 0:
		return nil, errors.New("the session's first record is not here: if it was removed when it was old, prove from the spool, or from an exported file")
	case lines[n-1].seq <= seq:
		return nil, evidence.ErrNotSigned
	case seq > 0 && n < 3:
		return nil, ErrNotFound // it was removed meanwhile
	}
	return lines, nil
}

// ofBlock is how many leaves are in one row.
const ofBlock = 256

// eachLeaf calls do with the leaves of a session from one number to before another one, in
// order. Each must be there, and in one version.
func (s *Source) eachLeaf(ctx context.Context, session string, from, to uint64, do func(seq uint64, leaf evidence.Hash) error) error {
	width := uint64(s.Sizes.orDefault().Rows) * 16 // of leaves alone, ClickHouse has the memory for more
	spans := []span{{}}
	if to-from > width {
		var err error
		if spans, err = s.spans(ctx, session, width); err != nil {
			return err
		}
	}
	next := from
	for _, part := range spans {
		if part.to == 0 || part.to > to {
			part.to = to
		}
		part.from = max(part.from, from)
		if part.from >= part.to {
			continue
		}
		sql := strings.NewReplacer("${database}", s.DB.Name(), "${session}", quote(session), "${block}", fmt.Sprint(ofBlock),
			"${leaf}", clickhouse.LeafSQL, "${events}", part.ofEvents(), "${leaves}", part.ofLeaves()).Replace(`
SELECT intDiv(seq, ${block}) AS block, arrayStringConcat(groupUniqArray(${block} + 1)(concat(reinterpretAsFixedString(seq), leaf))) FROM (
    SELECT seq, ${leaf} AS leaf FROM ${database}.events WHERE session_id = ${session}${events}
    UNION ALL
    SELECT seq, hash FROM ${database}.leaves WHERE session_id = ${session}${leaves})
GROUP BY block ORDER BY block`)
		err := s.queryWith(ctx, ch.Settings{"max_block_size": 2048}, "reading the record's session", sql, func(rows driver.Rows) error {
			var block uint64
			var text string
			if err := rows.Scan(&block, &text); err != nil {
				return err
			}
			if next < block*ofBlock {
				return missingLeaf(next)
			}
			var err error
			next, err = inOrder(next, min((block+1)*ofBlock, part.to), text, do)
			return err
		})
		if err != nil {
			return err
		}
		if next < part.to {
			return missingLeaf(next)
		}
	}
	return nil
}

// inOrder calls do with the leaves of a block that has those from next to end, and
// returns end.
func inOrder(next, end uint64, text string, do func(seq uint64, leaf evidence.Hash) error) (uint64, error) {
	const width = 8 + len(evidence.Hash{})
	var leaves [ofBlock]evidence.Hash
	var have [ofBlock]bool
	for ; len(text) >= width; text = text[width:] {
		seq := binary.LittleEndian.Uint64([]byte(text[:8]))
		i := seq % ofBlock
		if have[i] {
			return next, missingLeaf(seq)
		}
		leaves[i], have[i] = evidence.Hash([]byte(text[8:width])), true
	}
	for ; next < end; next++ {
		if !have[next%ofBlock] {
			return next, missingLeaf(next)
		}
		if err := do(next, leaves[next%ofBlock]); err != nil {
			return next, err
		}
	}
	return next, nil
}

func missingLeaf(seq uint64) error {
	return fmt.Errorf("record %d of the session is missing or there twice: see auditcollector verify", seq)
}
