//go:build !portable

#include "textflag.h"

// Exchanging 0x20 and 0x22 puts the quote right behind the control characters.
// As signed numbers bytes above 0x7F are below them all, so that one comparison
// finds the three, and another the backslash, which became 0x5E.
DATA consts<>+0x00(SB)/8, $0x0202020202020202
DATA consts<>+0x08(SB)/8, $0x0202020202020202
DATA consts<>+0x10(SB)/8, $0x2020202020202020
DATA consts<>+0x18(SB)/8, $0x2020202020202020
DATA consts<>+0x20(SB)/8, $0x5e5e5e5e5e5e5e5e
DATA consts<>+0x28(SB)/8, $0x5e5e5e5e5e5e5e5e
GLOBL consts<>(SB), RODATA|NOPTR, $48

// PLAIN leaves in X(a) a 0xff for each plain byte of 16 at off(SI).
#define PLAIN(off, a, b) \
	MOVOU   off(SI), a \
	PXOR    X13, a     \
	MOVO    a, b       \
	PCMPGTB X14, a     \
	PCMPEQB X15, b     \
	PANDN   a, b       \
	MOVO    b, a

// func plain(b []byte) int
//
// It needs only SSE2, which every amd64 processor has.
TEXT ·plain(SB), NOSPLIT, $0-32
	MOVQ  b_base+0(FP), SI
	MOVQ  b_len+8(FP), CX
	MOVQ  SI, DI
	MOVOU consts<>+0x00(SB), X13
	MOVOU consts<>+0x10(SB), X14
	MOVOU consts<>+0x20(SB), X15

four:
	CMPQ     CX, $64
	JLT      one
	PLAIN(0, X0, X4)
	PLAIN(16, X1, X5)
	PLAIN(32, X2, X6)
	PLAIN(48, X3, X7)
	PAND     X0, X1
	PAND     X2, X3
	PAND     X1, X3
	PMOVMSKB X3, AX
	CMPL     AX, $0xffff
	JNE      one
	ADDQ     $64, SI
	SUBQ     $64, CX
	JMP      four

one:
	CMPQ     CX, $16
	JLT      done
	PLAIN(0, X0, X4)
	PMOVMSKB X0, AX
	XORL     $0xffff, AX
	JNE      hit
	ADDQ     $16, SI
	SUBQ     $16, CX
	JMP      one

hit:
	BSFL AX, AX
	ADDQ AX, SI

done:
	SUBQ DI, SI
	MOVQ SI, ret+24(FP)
	RET
