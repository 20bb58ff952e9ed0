#include "scenarios/answers/request_story.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "core/base/duration.h"
#include "core/kube/types.h"
#include "fakes/envoy/envoy.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "scenarios/answers/failure_words.h"
#include "sim/world.h"

namespace wavetank::scenario {
namespace {

std::string Code(uint16_t code, envoysim::ResponseFlags flags) {
  std::string out = code == 0 ? std::string("no HTTP answer") : fmt::format("{}", code);
  if (flags != envoysim::kNoFlags) out += " " + envoysim::ResponseFlagsToString(flags);
  return out;
}

// The words, and what the network has to do with it.
std::string WithObstacle(const AddressNames& names, const sim::TrafficRecord& t,
                         const envoysim::SocketAddress& upstream, std::string words) {
  const std::string obstacle = names.Obstacle(t.client, upstream, t.record.cluster);
  return obstacle.empty() ? words : fmt::format("{} ({})", words, obstacle);
}

void TellTries(const AddressNames& names, const sim::TrafficRecord& t, bool failed, RequestStory* out) {
  const envoysim::RequestRecord& r = t.record;
  if (r.failed_tries != nullptr) {
    for (const envoysim::FailedTry& each : *r.failed_tries) {
      out->tries.push_back(
          {names.Of(each.upstream),
           fmt::format("failed ({}): {}; the route's retry policy allows another", Code(each.code, each.flags),
                       WithObstacle(names, t, each.upstream, FailureInWords(FactsOf(each, r.cluster))))});
    }
  }
  if (r.upstream == envoysim::SocketAddress{}) return;
  out->tries.push_back({names.Of(r.upstream), failed ? "failed" : "answered"});
}

// The endpoints that the client's proxy has for the cluster, and what became of each.
void TellCandidates(const sim::World& world, const AddressNames& names, const sim::TrafficRecord& t, bool failed,
                    RequestStory* out) {
  const envoysim::RequestRecord& r = t.record;
  const sim::PodProcess* const pod = world.FindPod(t.client);
  if (pod == nullptr || pod->envoy() == nullptr || r.cluster.empty()) return;
  const auto tried = [&](const std::string& address) {
    return r.failed_tries != nullptr &&
           std::any_of(r.failed_tries->begin(), r.failed_tries->end(),
                       [&](const envoysim::FailedTry& each) { return each.upstream.ToString() == address; });
  };
  for (const envoysim::EndpointStatus& e : pod->envoy()->Endpoints()) {
    if (e.cluster != r.cluster) continue;
    RequestStory::Candidate candidate{names.Named(e.address), e.weight, e.priority, e.healthy,
                                      e.outlier_ejected,      e.tls,    ""};
    if (e.address == r.upstream.ToString()) {
      candidate.verdict = failed ? "tried last, failed" : "answered";
    } else if (tried(e.address)) {
      candidate.verdict = "tried, failed";
    } else if (e.outlier_ejected) {
      candidate.verdict = "kept out by outlier detection";
    } else {
      candidate.verdict = e.healthy ? "not chosen by the load balancer" : "not healthy";
    }
    if (const auto address = envoysim::SocketAddress::Parse(e.address); address.ok()) {
      // What is kept from it now is kept from new connections: a firewall lets those that stand go on.
      const bool stands =
          candidate.verdict == "answered" && !names.Obstacle(t.client, *address, t.record.cluster).empty();
      candidate.verdict =
          WithObstacle(names, t, *address, stands ? "answered, on a connection that stands" : candidate.verdict);
    }
    out->candidates.push_back(std::move(candidate));
  }
}

std::string Decision(const envoysim::Hop& hop) {
  std::string out;
  if (hop.tls) {
    out += fmt::format("ends TLS{}{}; the client's certificate {}, the server's {}", hop.sni.empty() ? "" : " for SNI ",
                       hop.sni,
                       hop.client_verified ? fmt::format("is verified ({})", hop.client_identity) : "is not verified",
                       hop.server_verified ? fmt::format("too ({})", hop.server_identity) : "is not");
  } else if (!hop.sni.empty()) {
    out += fmt::format("passes TLS on by SNI {}", hop.sni);
  } else {
    out += "plain text";
  }
  if (!hop.listener.empty()) out += fmt::format("; listener {}", hop.listener);
  if (!hop.filter_chain.empty()) out += fmt::format(", filter chain {}", hop.filter_chain);
  if (!hop.cluster.empty()) out += fmt::format(", to cluster {}", hop.cluster);
  return out;
}

// Where the name is a Service's in the client's cluster and the port none of its: such a connection is nobody's to
// route, and leaves as it came.
std::string PortRemark(sim::World& world, const sim::TrafficRecord& t) {
  const sim::PodProcess* const pod = world.FindPod(t.client);
  if (pod == nullptr) return {};
  const std::vector<std::string> labels = absl::StrSplit(t.spec.host, '.');
  if (labels.size() > 2 && labels[2] != "svc") return {};
  const kube::NamespacedName name{labels.size() > 1 ? labels[1] : pod->pod()->meta.ns, labels[0]};
  const kube::ObjectRef service = world.cluster(pod->site().name).api().Get("Service", name);
  if (service == nullptr) return {};
  std::vector<int> ports;
  for (const kube::ServicePort& port : kube::ParseService(*service).ports) ports.push_back(port.port);
  if (ports.empty() || std::find(ports.begin(), ports.end(), t.spec.port) != ports.end()) return {};
  return fmt::format("Service {}/{} has no port {}; it has {}", name.ns, name.name, t.spec.port,
                     fmt::join(ports, ", "));
}

}  // namespace

std::string ObjectAt(std::string_view path) {
  const std::vector<std::string> parts = absl::StrSplit(absl::string_view(path.data(), path.size()), '/');
  if (parts.size() != 8) return std::string(path);
  std::string kind;
  bool begins = true;
  for (const char c : parts[6]) {
    if (c != '-') kind += begins ? absl::ascii_toupper(static_cast<unsigned char>(c)) : c;
    begins = c == '-';
  }
  return fmt::format("{} {}/{}", kind, parts[5], parts[7]);
}

std::string BlamedObject(const envoysim::RequestRecord& record) {
  const auto any = [&](std::initializer_list<std::string_view> signs) {
    return std::any_of(signs.begin(), signs.end(),
                       [&](std::string_view sign) { return record.details.find(sign) != std::string_view::npos; });
  };
  std::string_view by;
  if (any({"response_timeout", "per_try_timeout", "fault_filter", "direct_response", "cluster_not_found"})) {
    by = record.route_config;
  } else if (any({"overflow", "connection_timeout"})) {
    by = record.cluster_config;
  }
  return by.empty() ? std::string() : ObjectAt(by);
}

RequestStory TellRequest(sim::World& world, const AddressNames& names, const sim::TrafficRecord& t) {
  const envoysim::RequestRecord& r = t.record;
  const bool failed = !sim::Answered(t);
  RequestStory out;
  out.client = t.client.empty() ? "no client pod" : t.client;
  out.flow = t.spec.flow;
  out.asked = fmt::format("{} {}:{}{}", t.spec.method, t.spec.host, t.spec.port, t.spec.path);
  out.sent = t.sent;
  out.answer = failed ? fmt::format("{}: {}", Code(r.code, r.flags),
                                    WithObstacle(names, t, r.upstream, FailureInWords(FactsOf(r))))
                      : fmt::format("{} from {}@{}", r.code, t.server->name, t.server->cluster);
  out.remark = PortRemark(world, t);
  out.answer += fmt::format(", after {} and {} {}", FormatDuration(t.done - t.sent), r.attempts,
                            r.attempts == 1 ? "try" : "tries");
  out.listener = r.listener;
  out.filter_chain = r.filter_chain;
  out.virtual_host = r.virtual_host;
  out.route = r.route;
  out.cluster = r.cluster;
  out.route_object = ObjectAt(r.route_config);
  out.cluster_object = ObjectAt(r.cluster_config);
  TellTries(names, t, failed, &out);
  TellCandidates(world, names, t, failed, &out);
  for (const envoysim::Hop& hop : t.hops) {
    const std::string who = hop.proxy == kNoName ? "application at " + names.Of(hop.destination)
                                                 : std::string(world.kernel().names().Text(hop.proxy));
    out.stops.push_back({who, Decision(hop)});
  }
  return out;
}

std::string StoryText(const RequestStory& s, Time beginning) {
  std::string out =
      fmt::format("{} asks {} at {}: {}\n", s.client, s.asked, FormatDuration(s.sent - beginning), s.answer);
  const auto line = [&](std::string_view what, const std::string& text) {
    if (!text.empty()) out += fmt::format("  {:<13} {}\n", what, text);
  };
  line("but", s.remark);
  line("listener", s.listener);
  line("filter chain", s.filter_chain);
  line("virtual host", s.virtual_host);
  const auto of = [](const std::string& name, std::string_view word, const std::string& object) {
    if (object.empty()) return name;
    return name.empty() ? fmt::format("{} {}", word, object) : fmt::format("{} {} {}", name, word, object);
  };
  line("route", of(s.route, "of", s.route_object));
  line("cluster", of(s.cluster, "shaped by", s.cluster_object));
  for (const RequestStory::Candidate& c : s.candidates) {
    line("endpoint", fmt::format("{}  priority {}, weight {}, {}: {}", c.address, c.priority, c.weight,
                                 c.tls ? "TLS" : "plain text", c.verdict));
  }
  for (size_t i = 0; i < s.tries.size(); ++i) {
    line(fmt::format("try {}", i + 1), fmt::format("{}: {}", s.tries[i].upstream, s.tries[i].outcome));
  }
  for (const RequestStory::Stop& stop : s.stops) line("hop", fmt::format("{}: {}", stop.who, stop.decision));
  return out;
}

nlohmann::ordered_json StoryJson(const RequestStory& s, Time beginning) {
  nlohmann::ordered_json out = {{"client", s.client},
                                {"flow", s.flow},
                                {"asked", s.asked},
                                {"sentMs", ToMillis(s.sent - beginning)},
                                {"answer", s.answer},
                                {"remark", s.remark},
                                {"listener", s.listener},
                                {"filterChain", s.filter_chain},
                                {"virtualHost", s.virtual_host},
                                {"route", s.route},
                                {"cluster", s.cluster},
                                {"routeObject", s.route_object},
                                {"clusterObject", s.cluster_object},
                                {"endpoints", nlohmann::ordered_json::array()},
                                {"tries", nlohmann::ordered_json::array()},
                                {"hops", nlohmann::ordered_json::array()}};
  for (const RequestStory::Candidate& c : s.candidates) {
    out["endpoints"].push_back({{"address", c.address},
                                {"weight", c.weight},
                                {"priority", c.priority},
                                {"healthy", c.healthy},
                                {"ejected", c.ejected},
                                {"tls", c.tls},
                                {"verdict", c.verdict}});
  }
  for (const RequestStory::Try& t : s.tries) out["tries"].push_back({{"upstream", t.upstream}, {"outcome", t.outcome}});
  for (const RequestStory::Stop& stop : s.stops)
    out["hops"].push_back({{"who", stop.who}, {"decision", stop.decision}});
  return out;
}

}  // namespace wavetank::scenario
