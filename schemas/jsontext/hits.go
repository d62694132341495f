package jsontext

const ones, tops = 0x0101010101010101, 0x8080808080808080

// hits has the top bit of each quote, backslash and control character among the
// eight bytes of x, unless the byte is above 0x7F. Only the lowest bit is exact:
// borrows go upwards.
//
// Exchanging 0x20 and 0x22 puts the quote right behind the control characters,
// so that one subtraction finds both.
func hits(x uint64) uint64 {
	return (x ^ ones*2 - ones*0x21) | (x ^ ones*'\\' - ones)
}
