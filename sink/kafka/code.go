package kafka

import "fmt"

// A code is an error of the Kafka protocol
// (https://kafka.apache.org/protocol#protocol_error_codes).
type code int16

// The codes that the program handles.
const (
	unknownTopicOrPartition      code = 3
	leaderNotAvailable           code = 5
	messageTooLarge              code = 10
	recordListTooLarge           code = 18
	notEnoughReplicas            code = 19
	notEnoughReplicasAfterAppend code = 20
	topicAuthorizationFailed     code = 29
	clusterAuthorizationFailed   code = 31
	invalidTimestamp             code = 32
	unsupportedSASLMechanism     code = 33
	illegalSASLState             code = 34
	kafkaStorageError            code = 56
	saslAuthenticationFailed     code = 58
	invalidRecord                code = 87
)

var codeNames = map[code]string{
	unknownTopicOrPartition:      "UNKNOWN_TOPIC_OR_PARTITION",
	leaderNotAvailable:           "LEADER_NOT_AVAILABLE",
	messageTooLarge:              "MESSAGE_TOO_LARGE",
	recordListTooLarge:           "RECORD_LIST_TOO_LARGE",
	notEnoughReplicas:            "NOT_ENOUGH_REPLICAS",
	notEnoughReplicasAfterAppend: "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
	topicAuthorizationFailed:     "TOPIC_AUTHORIZATION_FAILED",
	clusterAuthorizationFailed:   "CLUSTER_AUTHORIZATION_FAILED",
	invalidTimestamp:             "INVALID_TIMESTAMP",
	unsupportedSASLMechanism:     "UNSUPPORTED_SASL_MECHANISM",
	illegalSASLState:             "ILLEGAL_SASL_STATE",
	kafkaStorageError:            "KAFKA_STORAGE_ERROR",
	saslAuthenticationFailed:     "SASL_AUTHENTICATION_FAILED",
	invalidRecord:                "INVALID_RECORD",
}

func (c code) Error() string {
	if name := codeNames[c]; name != "" {
		return fmt.Sprintf("Kafka error %d, %s", int16(c), name)
	}
	return fmt.Sprintf("Kafka error %d", int16(c))
}

// ErrorOf returns the error of a code of the protocol, nil for success. It
// lets Explain handle errors of other clients.
func ErrorOf(c int16) error { return errorOf(c, "") }

// errorOf returns nil for the code of success. text is the broker's message.
func errorOf(c int16, text string) error {
	switch {
	case c == 0:
		return nil
	case text == "":
		return code(c)
	}
	return fmt.Errorf("%w: %q", code(c), text)
}
