// Prints what queue disciplines of ns-3 do with the arrivals of crates/sim/tests/queues.rs, for crates/sim/tests/ns3.txt.
//
// The arrivals and the link are the same as there: 20,000 packets, a link of 10 Mbit/s that takes the next packet out of the queue as
// soon as it has sent one. Each line has the discipline, the seed of its random numbers, the packets delivered and dropped, the mean
// waiting time in microseconds, and the delivered bytes of each of the four flows; a line "drops" lists the numbers of the packets that
// CoDel and FQ-CoDel, which draw no random numbers, drop.
//
// Built and run with Debian's libns3-dev (3.37-2):
//   g++ -std=c++17 -O1 -I/usr/include queues.cc -o queues -lns3-traffic-control -lns3-network -lns3-core && ./queues

#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace {

constexpr int kPackets = 20000;
constexpr int kFlows = 4;
constexpr uint64_t kNanosPerByte = 800;

// A packet of a flow, which ns-3 hashes by its number.
class Item : public QueueDiscItem {
 public:
  Item(uint32_t size, uint32_t number, uint32_t flow)
      : QueueDiscItem(Create<Packet>(size), Address(), 0), m_number(number), m_flow(flow) {}
  void AddHeader() override {}
  bool Mark() override { return false; }
  uint32_t Hash(uint32_t) const override { return m_flow; }
  uint32_t m_number;
  uint32_t m_flow;
};

struct Arrival {
  uint64_t nanos;
  uint32_t size;
  uint32_t flow;
};

std::vector<Arrival> Arrivals() {
  uint64_t state = 1;
  auto draw = [&state](uint64_t below) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (state >> 33) % below;
  };
  std::vector<Arrival> arrivals;
  uint64_t nanos = 0;
  for (int n = 0; n < kPackets; n++) {
    // Periods of more and of less than the link carries.
    nanos += draw((n / 2000) % 2 == 0 ? 1700000 : 3000000);
    uint32_t size = draw(4) == 0 ? 300 : 1500;
    // Half of the packets belong to the first flow.
    uint64_t flow = draw(6);
    arrivals.push_back({nanos, size, static_cast<uint32_t>(flow < 3 ? 0 : flow - 2)});
  }
  return arrivals;
}

// One queue before a link.
class Server {
 public:
  explicit Server(Ptr<QueueDisc> queue) : m_queue(queue), m_bytes(kFlows) {
    queue->TraceConnectWithoutContext("Drop", MakeCallback(&Server::Drop, this));
  }

  void Arrive(Arrival arrival, uint32_t number) {
    m_queue->Enqueue(Create<Item>(arrival.size, number, arrival.flow));
    if (!m_busy) Serve();
  }

  void Serve() {
    Ptr<QueueDiscItem> head = m_queue->Dequeue();
    m_busy = head != nullptr;
    if (!m_busy) return;
    auto item = DynamicCast<Item>(head);
    m_delivered++;
    m_waited += (Simulator::Now() - item->GetTimeStamp()).GetNanoSeconds();
    m_bytes[item->m_flow] += item->GetSize();
    Simulator::Schedule(NanoSeconds(item->GetSize() * kNanosPerByte), &Server::Serve, this);
  }

  void Drop(Ptr<const QueueDiscItem> item) { m_drops.push_back(dynamic_cast<const Item&>(*item).m_number); }

  void Print(const std::string& name, int seed, bool list) {
    std::cout << name << ' ' << seed << ' ' << m_delivered << ' ' << m_drops.size() << ' '
              << m_waited / m_delivered / 1000;
    for (uint64_t bytes : m_bytes) std::cout << ' ' << bytes;
    std::cout << '\n';
    if (!list) return;
    std::cout << "drops";
    for (uint32_t number : m_drops) std::cout << ' ' << number;
    std::cout << '\n';
  }

 private:
  Ptr<QueueDisc> m_queue;
  bool m_busy = false;
  uint64_t m_delivered = 0;
  uint64_t m_waited = 0;
  std::vector<uint64_t> m_bytes;
  std::vector<uint32_t> m_drops;
};

void Run(const std::string& name, int seed, Ptr<QueueDisc> queue, bool list) {
  queue->Initialize();
  Server server(queue);
  std::vector<Arrival> arrivals = Arrivals();
  for (uint32_t n = 0; n < arrivals.size(); n++)
    Simulator::Schedule(NanoSeconds(arrivals[n].nanos), &Server::Arrive, &server, arrivals[n], n);
  Simulator::Stop(Seconds(100));
  Simulator::Run();
  server.Print(name, seed, list);
  Simulator::Destroy();
}

}  // namespace

int main() {
  auto size = [](uint32_t packets) { return QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, packets)); };
  Run("codel", 0,
      CreateObjectWithAttributes<CoDelQueueDisc>("MaxSize", size(1000), "MinBytes", UintegerValue(1500)), true);
  for (uint32_t limit : {1000, 60}) {
    auto fq = CreateObjectWithAttributes<FqCoDelQueueDisc>("MaxSize", size(limit));
    fq->SetQuantum(1514);
    Run("fq-codel-" + std::to_string(limit), 0, fq, true);
  }
  for (int seed = 1; seed <= 20; seed++) {
    RngSeedManager::SetRun(seed);
    auto pie = CreateObjectWithAttributes<PieQueueDisc>("MaxSize", size(1000), "MaxBurstAllowance",
                                                        TimeValue(MilliSeconds(150)), "UseDerandomization",
                                                        BooleanValue(true));
    pie->AssignStreams(seed);
    Run("pie", seed, pie, false);
    auto red = CreateObjectWithAttributes<RedQueueDisc>("MaxSize", size(1000), "LinkBandwidth",
                                                        DataRateValue(DataRate("10Mbps")), "MinTh", DoubleValue(5),
                                                        "MaxTh", DoubleValue(15), "QW", DoubleValue(0.002));
    red->AssignStreams(seed);
    Run("red", seed, red, false);
  }
}
