package main

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"slices"
	"testing"
)

// paletted returns a picture with 256 colours, which has a third of the bytes. The
// colours of a page's surfaces stay; of those at the edges of letters, each gets a near one.
func paletted(shot []byte) ([]byte, error) {
	img, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return nil, err
	}
	bounds := img.Bounds()
	count := make(map[color.RGBA]int)
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(img.At(x, y)).(color.RGBA) }
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	palette := color.Palette{}
	index := make(map[color.RGBA]int)    // in the palette
	distance := make(map[color.RGBA]int) // from there
	for len(palette) < min(256, len(colours)) {
		next := len(palette)
		if next >= 64 { // the frequent ones are there: the one that is farthest from them
			next = slices.Index(colours, slices.MaxFunc(colours, func(a, b color.RGBA) int { return cmp.Compare(distance[a], distance[b]) }))
		}
		p := colours[next]
		for _, c := range colours {
			r, g, b := int(c.R)-int(p.R), int(c.G)-int(p.G), int(c.B)-int(p.B)
			if d := r*r + g*g + b*b; len(palette) == 0 || d < distance[c] {
				index[c], distance[c] = len(palette), d
			}
		}
		palette = append(palette, p)
	}
	small := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			small.SetColorIndex(x, y, uint8(index[at(x, y)]))
		}
	}
	var w bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	err = encoder.Encode(&w, small)
	return w.Bytes(), err
}

// TestPaletted makes a picture of a thousand colours: the frequent one stays, and each
// of the others gets a near one.
func TestPaletted(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 64, 64))
	for y := range 64 {
		for x := range 64 {
			img.Set(x, y, color.RGBA{250, 251, 252, 255})
			if x > 31 {
				img.Set(x, y, color.RGBA{uint8(4 * y), uint8(4 * x), 7, 255})
			}
		}
	}
	var w bytes.Buffer
	if err := png.Encode(&w, img); err != nil {
		t.Fatal(err)
	}
	data, err := paletted(w.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	got, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := got.(*image.Paletted); !ok || len(p.Palette) > 256 {
		t.Fatalf("the picture is a %T", got)
	}
	for y := range 64 {
		for x := range 64 {
			was, is := img.RGBAAt(x, y), color.RGBAModel.Convert(got.At(x, y)).(color.RGBA)
			if near := func(a, b uint8) bool { return max(a, b)-min(a, b) <= 16 }; x < 32 && was != is || !near(was.R, is.R) || !near(was.G, is.G) || !near(was.B, is.B) {
				t.Fatalf("the colour %v at %d,%d is %v", was, x, y, is)
			}
		}
	}
}
