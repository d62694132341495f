package otlp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"time"

	"auditproxy/internal/httptls"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/protobuf/proto"
)

// A failing request is repeated for this long, so that a restart of the receiver
// is no error. The caller repeats longer, and counts.
const (
	retryFirst = 500 * time.Millisecond
	retryLast  = 2 * time.Second
	retryFor   = 5 * time.Second
)

// A link is the connection for one signal. It is not safe for concurrent use.
//
// The requests of the three signals have one form on the wire: a repeated field 1,
// answered by a partial success with the same two fields. So the client of traces,
// with its repetitions, compression and limits, carries all three. The clients of
// logs and metrics take only what their SDK made from a running program; the one
// way to make a log record of another time and resource is for tests only.
type link struct {
	target
	client otlptrace.Client // nil: to be opened
	drop   func() error     // closes what the client does not
	answer answer           // to the last request
}

// methods of gRPC by signal.
var methods = map[Signal]string{
	Logs:    "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
	Traces:  "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
	Metrics: "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
}

// send uploads resources of another signal than traces.
func send[M proto.Message](ctx context.Context, l *link, resources []M) error {
	if len(resources) == 0 {
		return nil
	}
	carriers := make([]*tracepb.ResourceSpans, len(resources))
	for i, m := range resources {
		b, err := proto.Marshal(m)
		if err != nil {
			return fmt.Errorf("encoding %s for %q: %w", l.signal, l.name, err)
		}
		carriers[i] = new(tracepb.ResourceSpans)
		carriers[i].ProtoReflect().SetUnknown(b)
	}
	return l.upload(ctx, carriers)
}

// upload sends one request and returns nil when the receiver has taken all of it.
func (l *link) upload(ctx context.Context, resources []*tracepb.ResourceSpans) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	if l.current != nil {
		// The library's clients keep their headers.
		if now := lowerNames(l.current()); !maps.Equal(now, l.headers) {
			_ = l.close()
			l.headers = now
		}
	}
	if l.client == nil {
		if err := l.open(ctx); err != nil {
			return fmt.Errorf("connecting to %q: %w", l.name, err)
		}
	}
	l.answer = answer{}
	err := l.client.UploadTraces(ctx, resources)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		// The peer may be gone without a word. A new connection finds out.
		_ = l.close()
	}
	return l.answer.verdict(ctx, &l.target, err)
}

// open makes the client. Every option is given, since the library reads its own
// from the environment.
func (l *link) open(ctx context.Context) error {
	if l.grpc {
		creds := insecure.NewCredentials()
		if l.tls != nil {
			creds = currentTLS{credentials.NewTLS(l.tls()), l.tls}
		}
		dial := []grpc.DialOption{grpc.WithTransportCredentials(creds), grpc.WithUnaryInterceptor(l.intercept)}
		if l.compression == GzipCompression {
			dial = append(dial, grpc.WithDefaultCallOptions(grpc.UseCompressor(gzip.Name)))
		}
		conn, err := grpc.NewClient(l.url.Host, dial...)
		if err != nil {
			return err
		}
		l.drop = conn.Close
		l.client = otlptracegrpc.NewClient(
			otlptracegrpc.WithGRPCConn(conn),
			otlptracegrpc.WithHeaders(l.headers),
			otlptracegrpc.WithTimeout(l.timeout),
			otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{Enabled: true, InitialInterval: retryFirst, MaxInterval: retryLast, MaxElapsedTime: retryFor}),
		)
		return l.client.Start(ctx)
	}
	transport := httptls.New(http.DefaultTransport.(*http.Transport), l.tls)
	l.drop = func() error { transport.CloseIdleConnections(); return nil }
	compression := otlptracehttp.NoCompression
	if l.compression == GzipCompression {
		compression = otlptracehttp.GzipCompression
	}
	l.client = otlptracehttp.NewClient(
		otlptracehttp.WithHTTPClient(&http.Client{
			Transport: watcher{transport, &l.answer},
			// Another place must not get the headers.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}),
		otlptracehttp.WithEndpointURL(l.url.String()),
		otlptracehttp.WithTLSClientConfig(nil), // the transport has it
		otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf),
		otlptracehttp.WithCompression(compression),
		otlptracehttp.WithHeaders(l.headers),
		otlptracehttp.WithTimeout(l.timeout),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: retryFirst, MaxInterval: retryLast, MaxElapsedTime: retryFor}),
	)
	return l.client.Start(ctx)
}

// currentTLS is TLS as it is configured at the time of a connection: gRPC makes
// connections by itself.
type currentTLS struct {
	credentials.TransportCredentials // of the first
	config                           func() *tls.Config
}

func (c currentTLS) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(c.config()).ClientHandshake(ctx, authority, conn)
}

func (c currentTLS) Clone() credentials.TransportCredentials { return c }

// close closes the connection. The next upload opens another.
func (l *link) close() error {
	if l.client == nil {
		return nil
	}
	// No request is running, so that this does not wait.
	err := l.client.Stop(context.Background())
	err = errors.Join(err, l.drop())
	l.client, l.drop = nil, nil
	return err
}

// intercept sends a request of gRPC as its signal's, and keeps the answer.
func (l *link) intercept(ctx context.Context, _ string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, methods[l.signal], request, reply, conn, opts...)
	if err == nil || ctx.Err() == nil { // else the answer before says why it was repeated
		l.answer = grpcAnswer(reply, err)
	}
	return err
}
