package otlp

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"

	"go.opentelemetry.io/otel/attribute"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/encoding/protowire"
)

// The numbers of the field that has the attributes.
const (
	logAttributes  protowire.Number = 6 // of a LogRecord
	spanAttributes protowire.Number = 9 // of a Span
)

// attributes are the encoded field of a message: for each attribute a KeyValue.
// Three quarters of the time to send a record went into structures for them, each
// encoded twice: for the log record and the span.
type attributes struct {
	field protowire.Number
	buf   []byte
}

// append appends attributes that were made for another field.
func (a *attributes) append(encoded []byte) {
	for len(encoded) > 0 {
		_, _, n := protowire.ConsumeTag(encoded)
		v, m := protowire.ConsumeBytes(encoded[n:])
		a.buf = protowire.AppendBytes(protowire.AppendTag(a.buf, a.field, protowire.BytesType), v)
		encoded = encoded[n+m:]
	}
}

// begin appends a KeyValue up to the size of its AnyValue, whose bytes are next.
func (a *attributes) begin(key string, size int) {
	const tag = 1 // the size of the tags of fields 1 to 15
	a.buf = protowire.AppendTag(a.buf, a.field, protowire.BytesType)
	a.buf = protowire.AppendVarint(a.buf, uint64(tag+protowire.SizeBytes(len(key))+tag+protowire.SizeBytes(size)))
	a.buf = protowire.AppendTag(a.buf, 1, protowire.BytesType)
	a.buf = protowire.AppendString(a.buf, key)
	a.buf = protowire.AppendTag(a.buf, 2, protowire.BytesType)
	a.buf = protowire.AppendVarint(a.buf, uint64(size))
}

// text adds a text, unless it is empty.
func (a *attributes) text(key, v string) {
	if v == "" {
		return
	}
	v = utf8Text(v)
	a.begin(key, 1+protowire.SizeBytes(len(v)))
	a.buf = protowire.AppendString(protowire.AppendTag(a.buf, 1, protowire.BytesType), v)
}

func (a *attributes) boolean(key string, v bool) {
	a.begin(key, 2)
	a.buf = protowire.AppendVarint(protowire.AppendTag(a.buf, 2, protowire.VarintType), protowire.EncodeBool(v))
}

// yes adds a flag that is left out if it is not set.
func (a *attributes) yes(key string, v bool) {
	if v {
		a.boolean(key, true)
	}
}

func (a *attributes) integer(key string, v int64) {
	a.begin(key, 1+protowire.SizeVarint(uint64(v)))
	a.buf = protowire.AppendVarint(protowire.AppendTag(a.buf, 3, protowire.VarintType), uint64(v))
}

// count adds a number that is unknown if it is zero.
func (a *attributes) count(key string, v int64) {
	if v != 0 {
		a.integer(key, v)
	}
}

// unsigned adds a number, as a text if OTLP has no such number.
func (a *attributes) unsigned(key string, v uint64) {
	if n := int64(v); n >= 0 {
		a.integer(key, n)
	} else {
		a.text(key, strconv.FormatUint(v, 10))
	}
}

// texts adds a list, unless it is empty.
func (a *attributes) texts(key string, list []string) {
	if len(list) == 0 {
		return
	}
	var values []byte // an ArrayValue
	for _, v := range list {
		v = utf8Text(v)
		values = protowire.AppendTag(values, 1, protowire.BytesType)
		values = protowire.AppendVarint(values, uint64(1+protowire.SizeBytes(len(v))))
		values = protowire.AppendString(protowire.AppendTag(values, 1, protowire.BytesType), v)
	}
	a.begin(key, 1+protowire.SizeBytes(len(values)))
	a.buf = protowire.AppendBytes(protowire.AppendTag(a.buf, 5, protowire.BytesType), values)
}

// constant adds an attribute that the conventions define with its value.
func (a *attributes) constant(kv attribute.KeyValue) { a.text(string(kv.Key), kv.Value.AsString()) }

// A member is a member of an object in a record, and the key of its attribute.
type member struct{ name, key string }

// maxMembers is the length of the longest list of members.
const maxMembers = 14

// object adds the members of an object that the list has, and returns the value of
// one. Of a name that is there twice the last value counts, as in the object's
// other readers.
func (a *attributes) object(v audit.JSON, members []member, wanted string) (value string) {
	if v == "" {
		return ""
	}
	var values [maxMembers]string
	// The record was parsed, so that this is an object.
	_ = jsontext.Members(string(v), func(name, value string) bool {
		for i := range members {
			if members[i].name == name {
				values[i] = value
				break
			}
		}
		return true
	})
	for i := range members {
		if values[i] != "" {
			a.scalar(members[i].key, values[i])
			if members[i].name == wanted {
				value = unquoted(values[i])
			}
		}
	}
	return value
}

// scalar adds a value of JSON: texts, integers and booleans as such, others as
// their text.
func (a *attributes) scalar(key, v string) {
	switch {
	case v == "null":
	case v == "true", v == "false":
		a.boolean(key, v == "true")
	case v[0] == '"':
		a.text(key, unquoted(v))
	default:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			a.integer(key, n)
		} else {
			a.text(key, v)
		}
	}
}

func unquoted(v string) string {
	switch {
	case v[0] != '"':
		return v
	case strings.IndexByte(v, '\\') < 0:
		return v[1 : len(v)-1]
	}
	return jsontext.Unquote(v)
}

// textPair returns an attribute of a structure.
func textPair(key attribute.Key, v string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: string(key), Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: utf8Text(v)}}}
}

// utf8Text returns s with U+FFFD for what is not UTF-8: protobuf has no other text,
// and one record must not hold back the others.
func utf8Text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
