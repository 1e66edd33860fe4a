// Data channels (RFC 8831, RFC 8832). Messages return on their channel. Those of a channel with the label "control" are orders.
package main

import (
	"encoding/json"
	"errors"
	"sync"

	"github.com/pion/datachannel"
	"github.com/pion/logging"
	"github.com/pion/sctp"
)

// An order opens or closes a channel.
type order struct {
	Do        string `json:"do"`
	ID        uint16 `json:"id"`
	Type      uint8  `json:"type"`
	Parameter uint32 `json:"parameter"`
	Priority  uint16 `json:"priority"`
	Label     string `json:"label"`
	Protocol  string `json:"protocol"`
}

type channels struct {
	sync.Mutex
	association *sctp.Association
	open        map[uint16]*datachannel.DataChannel
}

// Accepts the channels of the peer until the association ends.
func serveChannels(association *sctp.Association) {
	all := channels{association: association, open: map[uint16]*datachannel.DataChannel{}}
	for {
		stream, err := association.AcceptStream()
		if err != nil {
			break
		}
		go all.accept(stream)
	}
	tell(map[string]any{"event": "end"})
}

func config() *datachannel.Config {
	return &datachannel.Config{LoggerFactory: logging.NewDefaultLoggerFactory()}
}

func (c *channels) accept(stream *sctp.Stream) {
	stream.SetDefaultPayloadType(sctp.PayloadTypeWebRTCBinary)
	channel, err := datachannel.Server(stream, config())
	if err != nil {
		tell(map[string]any{"event": "not-accepted", "id": stream.StreamIdentifier(), "reason": err.Error()})
		return
	}
	tell(map[string]any{"event": "accepted", "id": channel.StreamIdentifier(), "type": channel.ChannelType,
		"parameter": channel.ReliabilityParameter, "priority": channel.Priority, "label": channel.Label,
		"protocol": channel.Protocol})
	c.serve(channel)
}

// Returns each message until the peer resets its stream, or obeys it.
func (c *channels) serve(channel *datachannel.DataChannel) {
	id := channel.StreamIdentifier()
	c.Lock()
	c.open[id] = channel
	c.Unlock()
	message := make([]byte, largestMessage)
	for {
		length, isString, err := channel.ReadDataChannel(message)
		if err != nil {
			c.Lock()
			if c.open[id] == channel {
				delete(c.open, id)
			}
			c.Unlock()
			tell(map[string]any{"event": "channel-over", "id": id, "reason": err.Error()})
			return
		}
		if channel.Label == "control" {
			c.obey(message[:length])
		} else if _, err := channel.WriteDataChannel(message[:length], isString); err != nil {
			tell(map[string]any{"event": "send-failed", "id": id, "reason": err.Error()})
		}
	}
}

func (c *channels) obey(message []byte) {
	var order order
	if err := json.Unmarshal(message, &order); err != nil {
		fail("order", err)
	}
	switch order.Do {
	case "open":
		c.dial(order)
	case "close":
		c.Lock()
		channel := c.open[order.ID]
		c.Unlock()
		if channel == nil {
			fail("close", errors.New("no such channel"))
		}
		if err := channel.Close(); err != nil {
			fail("close", err)
		}
	default:
		fail("order", errors.New(order.Do))
	}
}

func (c *channels) dial(order order) {
	settings := config()
	settings.ChannelType = datachannel.ChannelType(order.Type)
	settings.ReliabilityParameter = order.Parameter
	settings.Priority = order.Priority
	settings.Label = order.Label
	settings.Protocol = order.Protocol
	channel, err := datachannel.Dial(c.association, order.ID, settings)
	if err != nil {
		fail("dial", err)
	}
	channel.OnOpen(func() { tell(map[string]any{"event": "opened", "id": order.ID}) })
	go c.serve(channel)
}
