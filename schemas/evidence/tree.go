package evidence

import "golang.org/x/mod/sumdb/tlog"

// A Hash is a node of a Merkle tree (RFC 6962, section 2.1).
type Hash = tlog.Hash

// Leaf returns the leaf of a record: the hash of its line as it was written,
// checksum included, line feed excluded.
func Leaf(line []byte) Hash { return tlog.RecordHash(line) }

// A Tree is the Merkle tree of the leaves so far, in the memory of one hash for
// each bit of its size. Its zero value is empty.
type Tree struct {
	size     int64
	roots    []Hash   // of the complete trees that its size is made of, the largest first
	proof    []*Proof // that are collected
	subtrees []Hash   // see Subtrees
}

// SubtreeWidth is the number of leaves of the subtrees whose roots are kept. It is a power
// of two, and what is stored depends on it.
const SubtreeWidth = 4096

// A Proof is that a leaf is in a tree (RFC 6962, section 2.1.1): the hashes from
// the leaf's sibling up to the child of the root.
type Proof struct {
	Index int64
	Path  []Hash

	// The first leaf of the subtree that Path has the root of, and the leaves in it.
	from, width int64
}

// Size is the number of leaves.
func (t *Tree) Size() int64 { return t.size }

// Subtrees returns the roots of its complete subtrees of SubtreeWidth leaves, in order. The
// caller does not change them.
func (t *Tree) Subtrees() []Hash { return t.subtrees[:len(t.subtrees):len(t.subtrees)] }

// Clone returns a tree that grows independently. It collects no proof.
func (t *Tree) Clone() Tree {
	return Tree{size: t.size, roots: append([]Hash(nil), t.roots...), subtrees: t.Subtrees()}
}

// Prove has the proof of the leaf with that index collected from now on, beside others.
// It is to be called before that leaf is appended.
func (t *Tree) Prove(index int64) {
	t.proof = append(t.proof, &Proof{Index: index, from: index, width: 1})
}

// Append adds a leaf.
func (t *Tree) Append(leaf Hash) { t.add(leaf, 1) }

// AppendSubtree adds SubtreeWidth leaves by the root of their subtree. The size must be a
// multiple of SubtreeWidth, and none of the leaves one that Prove asked for.
func (t *Tree) AppendSubtree(root Hash) { t.add(root, SubtreeWidth) }

// add adds a complete subtree of so many leaves.
func (t *Tree) add(root Hash, width int64) {
	n := t.size / width
	t.size += width
	t.roots = append(t.roots, root)
	for ; ; n >>= 1 {
		last := len(t.roots) - 1
		if width == SubtreeWidth {
			t.subtrees = append(t.subtrees, t.roots[last])
		}
		if n&1 == 0 {
			return
		}
		left, right := t.roots[last-1], t.roots[last]
		for _, p := range t.proof {
			p.join(t.size-2*width, width, width, left, right)
		}
		t.roots[last-1] = tlog.NodeHash(left, right)
		t.roots = t.roots[:last]
		width *= 2
	}
}

// Root returns the tree's hash.
func (t *Tree) Root() Hash { return t.root(nil) }

// Proof returns the tree's hash, and the proof of the leaf with that index, which
// Prove asked for; nil if the leaf is not in the tree yet. More leaves may follow.
func (t *Tree) Proof(index int64) (Hash, *Proof) {
	for _, collected := range t.proof {
		if collected.Index == index && index < t.size {
			p := *collected
			p.Path = append([]Hash(nil), p.Path...)
			return t.root(&p), &p
		}
	}
	return t.Root(), nil
}

func (t *Tree) root(p *Proof) Hash {
	if t.size == 0 {
		h, _ := tlog.TreeHash(0, nil) // of no leaves it reads none, so there is no error
		return h
	}
	last := len(t.roots) - 1
	h := t.roots[last]
	right := t.size & -t.size
	for i, n := last-1, t.size-right; i >= 0; i-- {
		left := n & -n
		p.join(n-left, left, right, t.roots[i], h)
		h = tlog.NodeHash(t.roots[i], h)
		n, right = n-left, right+left
	}
	return h
}

// join adds what the proof needs where two subtrees become one: left has the
// given leaves from one on, and right as many after it as its width.
func (p *Proof) join(from, left, right int64, l, r Hash) {
	switch {
	case p == nil:
		return
	case p.from == from && p.width == left:
		p.Path = append(p.Path, r)
	case p.from == from+left && p.width == right:
		p.Path = append(p.Path, l)
	default:
		return
	}
	p.from, p.width = from, left+right
}

// Check reports whether the leaf is in the tree of that size and hash.
func (p *Proof) Check(size int64, root, leaf Hash) error {
	return tlog.CheckRecord(p.Path, size, root, p.Index, leaf)
}
