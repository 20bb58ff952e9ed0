#include "import/access/traffic_inputs.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/base/json_text.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace wavetank::importing {
namespace {

using nlohmann::ordered_json;

constexpr WallNs kMs = 1'000'000;

// Two counts of the same chance rarely differ by more.
bool Differ(double a, double b) { return std::abs(a - b) > 3 * std::sqrt(std::max(a, b)) + 1; }

class Maker {
 public:
  Maker(const Traffic& traffic, const PodDirectory& pods, Evidence& evidence)
      : traffic_(traffic), pods_(pods), evidence_(evidence) {
    for (const auto& [name, ip] : traffic.addresses) owner_of_.emplace(ip, name);
  }

  void Run() {
    for (const auto& [key, flow] : traffic_.flows) {
      if (!key.client.pod.empty()) told_by_client_.insert(Whole(key.client).pod);
    }
    for (const auto& [key, flow] : traffic_.flows) AddFlow(key, flow);
    for (const auto& [key, asked] : claims_) {
      for (const auto& [begin, window] : asked.windows) AddClaim(key, asked.service, window);
    }
    AddBehaviours();
    const auto note = [&](uint64_t count, std::string_view what) {
      if (count > 0) evidence_.notes.push_back(fmt::format("{} {}", count, what));
    };
    note(traffic_.at_gateways, "lines of access logs are of gateways that passed a request on; its client counts");
    note(traffic_.from_outside, "requests came from outside the mesh through a gateway; they are not sent in a replay");
    note(strangers_,
         "requests are told by their server alone, and no source tells whose the client's address is; they "
         "are not sent in a replay");
    note(gateways_,
         "requests are told by their server alone and came through a gateway; they are not sent in a replay");
    note(without_app_,
         "workloads have no label app or app.kubernetes.io/name, so that what they answered cannot be done again");
  }

 private:
  struct AskedKey {
    PodName client;
    std::string host;
    int64_t port = 0;
    bool tcp = false;
    auto operator<=>(const AskedKey&) const = default;
  };
  struct Asked {
    std::string service;
    std::map<WallNs, TrafficWindow> windows;
  };

  // As objects know it, where its log does not say all.
  PodName Whole(const PodName& name) const {
    const auto [begin, end] = pods_.by_name.equal_range(name.pod);
    PodName out = name;
    for (auto it = begin; it != end; ++it) {
      if (!name.ns.empty() && it->second.name.ns != name.ns) continue;
      if (!name.cluster.empty() && it->second.name.cluster != name.cluster) continue;
      out.ns = it->second.name.ns;
      out.cluster = it->second.name.cluster;
      break;
    }
    return out;
  }

  void AddFlow(const FlowKey& key, const Flow& flow) {
    PodName client = Whole(key.client);
    if (client.pod.empty()) {
      uint64_t requests = 0;
      for (const auto& [begin, window] : flow.windows) requests += window.requests;
      const auto pod = pods_.by_ip.find(key.client_ip);
      // Its own log tells of the same requests.
      if (owner_of_.contains(key.client_ip)) return;
      if (pod == pods_.by_ip.end()) {
        strangers_ += requests;
        return;
      }
      if (told_by_client_.contains(pod->second.name.pod)) return;
      if (pod->second.app.find("gateway") != std::string::npos) {
        gateways_ += requests;
        return;
      }
      client = pod->second.name;
    }
    AddStretches(client, key, flow);
    // A replay's requests do not tell methods and paths: claims are for all that a client asks of a host.
    Asked& asked = claims_[{client, key.host, key.port, key.tcp}];
    if (asked.service.empty()) asked.service = flow.service;
    for (const auto& [begin, window] : flow.windows) asked.windows[begin].Add(window);
  }

  // Windows of about one rate, without a pause between them, are one stretch.
  void AddStretches(const PodName& client, const FlowKey& key, const Flow& flow) {
    TrafficWindow stretch;
    WallNs end = 0;  // of its last window
    double per_second = 0;
    const auto flush = [&] {
      if (stretch.requests > 0) AddStretch(client, key, flow, stretch);
      stretch = TrafficWindow();
    };
    for (const auto& [begin, window] : flow.windows) {
      const double seconds = static_cast<double>(kTrafficWindow) / 1e9;
      // A window that is not full to its ends, as at a beginning or an end, tells the rate between its ends.
      const double span = std::max(static_cast<double>(window.last - window.first) / 1e9, 0.001);
      const double rate =
          window.requests > 1 ? static_cast<double>(window.requests - 1) / span : static_cast<double>(1) / seconds;
      // A pause shows between windows, and inside of one by the silence to where the last one ended.
      const double silence = static_cast<double>(window.first - stretch.last) / 1e9;
      if (stretch.requests > 0 && (begin > end || Differ(per_second * seconds, rate * seconds) ||
                                   silence > 5 / std::max(per_second, 0.1) + 1)) {
        flush();
      }
      if (stretch.requests == 0) per_second = rate;
      stretch.Add(window);
      end = begin + kTrafficWindow;
    }
    flush();
  }

  void AddStretch(const PodName& client, const FlowKey& key, const Flow& flow, const TrafficWindow& stretch) {
    InferredInput& input = evidence_.inputs.emplace_back();
    input.kind = InputKind::kTraffic;
    input.at = input.earliest = input.latest = stretch.first;
    input.cluster = client.cluster;
    input.ns = client.ns;
    input.name = client.pod;
    input.host = key.host;
    input.place = stretch.place;
    input.replica = stretch.place.file;
    const int64_t gaps = static_cast<int64_t>(stretch.requests) - 1;
    const int64_t period = gaps > 0 ? std::max<int64_t>((stretch.last - stretch.first) / gaps, 1000) : 1'000'000'000;
    ordered_json extra = {{"port", key.port}, {"requests", stretch.requests}, {"periodNs", period}};
    if (key.tcp) {
      extra["tcp"] = true;
    } else {
      extra["method"] = key.method;
      extra["path"] = flow.path;
    }
    if (!flow.service.empty()) extra["service"] = flow.service;
    input.extra = JsonText(extra);
    input.detail = fmt::format("{} requests, {:.1f}/s", stretch.requests, 1e9 / static_cast<double>(period));
  }

  void AddClaim(const AskedKey& key, const std::string& service, const TrafficWindow& window) {
    const PodName& client = key.client;
    Claim& claim = evidence_.claims.emplace_back();
    claim.kind = ClaimKind::kTraffic;
    claim.at = window.first;
    claim.name = client.ns.empty() ? client.pod : client.pod + "." + client.ns;
    claim.place = window.place;
    claim.replica = window.place.file;
    claim.count = static_cast<int64_t>(window.requests);
    const auto counts = [](const auto& map) {
      ordered_json out = ordered_json::object();
      for (const auto& [what, count] : map) out[fmt::format("{}", what)] = count;
      return out;
    };
    ordered_json extra = {{"until", FormatWall(window.last)},
                          {"spanNs", window.last - window.first},
                          {"host", key.host},
                          {"port", key.port},
                          {"requests", window.requests},
                          {"codes", counts(window.codes)},
                          {"flags", counts(window.flags)}};
    if (!client.cluster.empty()) extra["cluster"] = client.cluster;
    if (!service.empty()) extra["service"] = service;
    if (key.tcp) extra["tcp"] = true;
    if (!window.upstreams.empty()) extra["upstreams"] = counts(window.upstreams);
    if (!window.durations.empty()) {
      extra["p50Ms"] = window.durations.Quantile(0.5);
      extra["p99Ms"] = window.durations.Quantile(0.99);
    }
    claim.extra = JsonText(extra);
  }

  struct Workload {
    std::string cluster, ns, app, version;
    auto operator<=>(const Workload&) const = default;
  };

  void AddBehaviours() {
    std::map<Workload, std::map<WallNs, ServedWindow>> all;
    std::set<std::string> own;  // addresses of servers whose own log is there
    for (const auto& [server, windows] : traffic_.served) {
      if (!server.pod.starts_with('@')) {
        if (const auto it = traffic_.addresses.find(server); it != traffic_.addresses.end()) own.insert(it->second);
      }
    }
    for (const auto& [server, windows] : traffic_.served) {
      Workload workload;
      if (server.pod.starts_with('@')) {
        const std::string ip = server.pod.substr(1);
        if (own.contains(ip)) continue;
        const auto pod = pods_.by_ip.find(ip);
        if (pod != pods_.by_ip.end()) {
          workload = {pod->second.name.cluster, pod->second.name.ns, pod->second.app, pod->second.version};
        } else if (pods_.empty()) {
          workload = {"", "", server.pod, ""};  // of a skeleton, whose pods are made by address
        } else {
          continue;  // of a pod that is gone, or an address outside the mesh
        }
      } else if (pods_.empty()) {
        const auto ip = traffic_.addresses.find(server);
        if (ip == traffic_.addresses.end()) continue;
        workload = {"", "", "@" + ip->second, ""};
      } else {
        const PodName whole = Whole(server);
        const auto [begin, end] = pods_.by_name.equal_range(whole.pod);
        for (auto it = begin; it != end; ++it) {
          if (it->second.name == whole) workload = {whole.cluster, whole.ns, it->second.app, it->second.version};
        }
      }
      if (workload.app.empty()) {
        ++without_app_;
        continue;
      }
      for (const auto& [begin, window] : windows) {
        ServedWindow& sum = all[workload][begin];
        if (sum.requests == 0) sum.place = window.place;
        sum.requests += window.requests;
        for (const auto& [code, count] : window.codes) sum.codes[code] += count;
        sum.durations.Add(window.durations);
      }
    }
    for (const auto& [workload, windows] : all) {
      ServedWindow in_force;  // all windows since the last change
      for (const auto& [begin, window] : windows) {
        const bool first = in_force.requests == 0;
        if (!first && !Changed(in_force, window)) {
          in_force.requests += window.requests;
          for (const auto& [code, count] : window.codes) in_force.codes[code] += count;
          continue;
        }
        // As nothing else is known, an application answers 200 at once.
        if (first && Plain(window)) {
          in_force = window;
          continue;
        }
        in_force = window;
        AddBehaviour(workload, begin, window);
      }
    }
  }

  static bool Plain(const ServedWindow& window) {
    return window.codes.size() == 1 && window.codes.contains(200) && window.durations.Quantile(0.99) <= 2;
  }

  static bool Changed(const ServedWindow& before, const ServedWindow& now) {
    std::set<int64_t> codes;
    for (const ServedWindow* window : {&before, &now}) {
      for (const auto& [code, count] : window->codes) codes.insert(code);
    }
    for (const int64_t code : codes) {
      const auto a = before.codes.find(code), b = now.codes.find(code);
      const double expected = a == before.codes.end()
                                  ? 0
                                  : static_cast<double>(a->second) * static_cast<double>(now.requests) /
                                        static_cast<double>(before.requests);
      if (Differ(expected, b == now.codes.end() ? 0 : static_cast<double>(b->second))) return true;
    }
    const auto slow = static_cast<double>(before.durations.Quantile(0.5)) + 1;
    const auto slow_now = static_cast<double>(now.durations.Quantile(0.5)) + 1;
    return now.requests >= 10 && (slow_now > 2 * slow + 2 || slow > 2 * slow_now + 2);
  }

  void AddBehaviour(const Workload& workload, WallNs at, const ServedWindow& window) {
    InferredInput& input = evidence_.inputs.emplace_back();
    input.kind = InputKind::kBehaviour;
    input.at = input.earliest = at;
    input.latest = at + kTrafficWindow;
    input.cluster = workload.cluster;
    input.ns = workload.ns;
    input.name = workload.app;
    input.place = window.place;
    input.replica = window.place.file;
    ordered_json extra = ordered_json::object();
    if (!workload.version.empty()) extra["version"] = workload.version;
    // A draw for each answer, one after the other: the share of those that are left.
    uint64_t left = window.requests;
    ordered_json answers = ordered_json::array();
    for (const auto& [code, count] : window.codes) {
      if (code >= 200 && code <= 599 && code != 200 && left > 0) {
        answers.push_back({{"code", code}, {"sharePpm", std::min<uint64_t>(1'000'000 * count / left, 1'000'000)}});
        left -= count;
        input.detail += fmt::format("{}{} {:.1f} %", input.detail.empty() ? "" : ", ", code,
                                    100.0 * static_cast<double>(count) / static_cast<double>(window.requests));
      }
    }
    if (!answers.empty()) extra["answers"] = std::move(answers);
    const int64_t p50 = window.durations.Quantile(0.5), p99 = window.durations.Quantile(0.99);
    if (p99 > 2) {
      extra["latency"] = {{{"sharePpm", 500'000}, {"ns", p50 * kMs}}, {{"sharePpm", 990'000}, {"ns", p99 * kMs}}};
      input.detail += fmt::format("{}p50 {} ms, p99 {} ms", input.detail.empty() ? "" : ", ", p50, p99);
    }
    if (input.detail.empty()) input.detail = "200 at once";
    input.extra = JsonText(extra);
  }

  const Traffic& traffic_;
  const PodDirectory& pods_;
  Evidence& evidence_;
  std::map<std::string, PodName> owner_of_;  // by address, of pods with a log
  std::set<std::string> told_by_client_;
  std::map<AskedKey, Asked> claims_;
  uint64_t strangers_ = 0, gateways_ = 0, without_app_ = 0;
};

}  // namespace

void InferTraffic(const Traffic& traffic, const PodDirectory& pods, Evidence& evidence) {
  Maker(traffic, pods, evidence).Run();
}

}  // namespace wavetank::importing
