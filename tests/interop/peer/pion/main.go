// A peer on pion/sctp, steered by its command line as the one on usrsctp is: one association over UDP. It echoes messages, or
// sends standard input and writes received data to standard output, or has data channels (channels.go). It reports events on
// standard error, one JSON object per line.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/pion/logging"
	"github.com/pion/sctp"
)

const (
	largestMessage = 1 << 20
	// Bytes that pion may hold before we wait: it takes all that it is given.
	mostBuffered = 1 << 20
	identifier   = sctp.PayloadTypeWebRTCBinary
)

type options struct {
	local, remote *net.UDPAddr
	listen        bool
	work, end     string
	messageBytes  int
	expectedBytes uint64
	unordered     bool
	interleave    bool
	zeroChecksum  bool
}

// pion stops reading at once when it aborts, which closes the socket, mostly before the ABORT has left. Here it has time to.
type patientConn struct{ *net.UDPConn }

func (c patientConn) SetReadDeadline(at time.Time) error {
	return c.UDPConn.SetReadDeadline(at.Add(300 * time.Millisecond))
}

type tally struct {
	sync.Mutex
	news     *sync.Cond
	messages uint64
	bytes    uint64
	over     bool
}

func tell(fields map[string]any) {
	line, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	os.Stderr.Write(append(line, '\n'))
}

func fail(what string, err error) {
	tell(map[string]any{"event": "error", "what": what, "reason": err.Error()})
	os.Exit(2)
}

func parse() options {
	local := flag.String("local", "", "ADDRESS:PORT to bind")
	remote := flag.String("remote", "", "ADDRESS:PORT of the other side")
	listen := flag.Bool("listen", false, "let the other side open the association")
	message := flag.Int("message", 16<<10, "how standard input is cut, in bytes")
	expected := flag.Uint64("expect", 0, "bytes to receive before the end")
	end := flag.String("end", "wait", "wait, shutdown or abort")
	unordered := flag.Bool("unordered", false, "send unordered messages")
	interleave := flag.Bool("interleave", false, "offer I-DATA")
	zeroChecksum := flag.Bool("zero-checksum", false, "announce that zero checksums are accepted, as below DTLS")
	flag.Parse()
	parsed := options{listen: *listen, work: flag.Arg(0), end: *end, messageBytes: *message,
		expectedBytes: *expected, unordered: *unordered, interleave: *interleave, zeroChecksum: *zeroChecksum}
	if flag.NArg() != 1 || (parsed.work != "echo" && parsed.work != "pipe" && parsed.work != "channels") {
		fail("work", errors.New("expected echo, pipe or channels"))
	}
	var err error
	if parsed.local, err = net.ResolveUDPAddr("udp4", *local); err != nil {
		fail("local", err)
	}
	if parsed.remote, err = net.ResolveUDPAddr("udp4", *remote); err != nil {
		fail("remote", err)
	}
	return parsed
}

func associate(options options) *sctp.Association {
	conn, err := net.DialUDP("udp4", options.local, options.remote)
	if err != nil {
		fail("socket", err)
	}
	config := []sctp.AssociationOption{
		sctp.WithNetConn(patientConn{conn}),
		sctp.WithMaxReceiveBufferSize(1 << 20),
		sctp.WithMaxMessageSize(largestMessage),
		sctp.WithLoggerFactory(logging.NewDefaultLoggerFactory()),
		sctp.WithEnableInterleaving(options.interleave),
		sctp.WithEnableZeroChecksum(options.zeroChecksum),
	}
	association, err := open(options.listen, config)
	if err != nil {
		fail("association", err)
	}
	agreed, _ := association.Metadata()
	tell(map[string]any{"event": "up", "interleaves": agreed.MessageInterleavingEnabled,
		"sends_zero_checksums": agreed.ZeroChecksumSendingEnabled})
	return association
}

func open(listen bool, config []sctp.AssociationOption) (*sctp.Association, error) {
	if listen {
		tell(map[string]any{"event": "listening"})
		options := make([]sctp.ServerOption, len(config))
		for i, option := range config {
			options[i] = option
		}
		return sctp.ServerWithOptions(options...)
	}
	options := make([]sctp.ClientOption, len(config))
	for i, option := range config {
		options[i] = option
	}
	return sctp.ClientWithOptions(options...)
}

func (t *tally) count(bytes int) {
	t.Lock()
	defer t.Unlock()
	t.bytes += uint64(bytes)
	t.messages++
	t.news.Broadcast()
}

func (t *tally) finish() {
	t.Lock()
	defer t.Unlock()
	t.over = true
	t.news.Broadcast()
}

func (t *tally) await(bytes uint64) {
	t.Lock()
	defer t.Unlock()
	for t.bytes < bytes && !t.over {
		t.news.Wait()
	}
}

func write(stream *sctp.Stream, message []byte, ppid sctp.PayloadProtocolIdentifier) error {
	for stream.BufferedAmount() > mostBuffered {
		time.Sleep(time.Millisecond)
	}
	_, err := stream.WriteSCTP(message, ppid)
	return err
}

// Receives from a stream until its end.
func serve(stream *sctp.Stream, options options, tally *tally) {
	message := make([]byte, largestMessage)
	for {
		length, ppid, err := stream.ReadSCTP(message)
		if err != nil {
			return
		}
		if options.work == "echo" {
			if err := write(stream, message[:length], ppid); err != nil {
				return
			}
		} else if _, err := os.Stdout.Write(message[:length]); err != nil {
			fail("output", err)
		}
		tally.count(length)
	}
}

// Serves our own stream and those that the peer opens, until all have been read to their ends.
func receive(association *sctp.Association, own *sctp.Stream, options options, tally *tally) {
	var streams sync.WaitGroup
	if own != nil {
		streams.Add(1)
		go func() {
			defer streams.Done()
			serve(own, options, tally)
		}()
	}
	for {
		stream, err := association.AcceptStream()
		if err != nil {
			break
		}
		// Data for our own stream that came before we had opened it.
		if own != nil && stream.StreamIdentifier() == own.StreamIdentifier() {
			continue
		}
		streams.Add(1)
		go func() {
			defer streams.Done()
			serve(stream, options, tally)
		}()
	}
	streams.Wait()
	tally.finish()
}

func sendInput(stream *sctp.Stream, options options) {
	message := make([]byte, options.messageBytes)
	for {
		length, err := io.ReadFull(os.Stdin, message)
		if length > 0 {
			if err := write(stream, message[:length], identifier); err != nil {
				tell(map[string]any{"event": "send-failed", "reason": err.Error()})
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func end(association *sctp.Association, stream *sctp.Stream, how string, tally *tally) {
	switch how {
	case "shutdown":
		for stream != nil && stream.BufferedAmount() > 0 {
			time.Sleep(time.Millisecond)
		}
		limited, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := association.Shutdown(limited); err != nil {
			fail("shutdown", err)
		}
	case "abort":
		association.Abort("told to")
	default:
		tally.await(^uint64(0))
	}
}

func main() {
	options := parse()
	association := associate(options)
	if options.work == "channels" {
		serveChannels(association)
		return
	}
	var counted tally
	counted.news = sync.NewCond(&counted.Mutex)
	var stream *sctp.Stream
	if options.work == "pipe" {
		var err error
		if stream, err = association.OpenStream(0, identifier); err != nil {
			fail("stream", err)
		}
		stream.SetReliabilityParams(options.unordered, sctp.ReliabilityTypeReliable, 0)
	}
	go receive(association, stream, options, &counted)
	if options.work == "pipe" {
		sendInput(stream, options)
	}
	counted.await(options.expectedBytes)
	end(association, stream, options.end, &counted)
	counted.Lock()
	defer counted.Unlock()
	tell(map[string]any{"event": "end", "messages": counted.messages, "bytes": counted.bytes})
}
