#include "import/evidence/evidence.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "core/kube/time_format.h"
#include "fmt/format.h"

namespace wavetank::importing {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string Text(const Place& place) {
  return place.line == 0 ? place.file : fmt::format("{}:{}", place.file, place.line);
}

std::string_view NameOf(InputKind kind) {
  switch (kind) {
    case InputKind::kIstiodStarted:
      return "istiodStarted";
    case InputKind::kRemoteSecret:
      return "remoteSecret";
    case InputKind::kSecret:
      return "secret";
    case InputKind::kService:
      return "service";
    case InputKind::kEndpoints:
      return "endpoints";
    case InputKind::kGateway:
      return "gateway";
    case InputKind::kGatewayDns:
      return "gatewayDns";
    case InputKind::kNode:
      return "node";
    case InputKind::kNetwork:
      return "network";
    case InputKind::kMeshNetworks:
      return "meshNetworks";
    case InputKind::kMeshConfig:
      return "meshConfig";
    case InputKind::kConfig:
      return "config";
    case InputKind::kDns:
      return "dns";
    case InputKind::kClusterUnreachable:
      return "clusterUnreachable";
    case InputKind::kProxyConnected:
      return "proxyConnected";
    case InputKind::kProxyDisconnected:
      return "proxyDisconnected";
    case InputKind::kProxyRefused:
      return "proxyRefused";
    case InputKind::kTraffic:
      return "traffic";
    case InputKind::kBehaviour:
      return "behaviour";
  }
  return "?";
}

std::string_view NameOf(ClaimKind kind) {
  switch (kind) {
    case ClaimKind::kPush:
      return "push";
    case ClaimKind::kNack:
      return "nack";
    case ClaimKind::kClusters:
      return "clusters";
    case ClaimKind::kClusterSynced:
      return "clusterSynced";
    case ClaimKind::kGatewayReload:
      return "gatewayReload";
    case ClaimKind::kProxyConnected:
      return "proxyConnected";
    case ClaimKind::kProxyLost:
      return "proxyLost";
    case ClaimKind::kHeld:
      return "held";
    case ClaimKind::kTraffic:
      return "traffic";
    case ClaimKind::kMetric:
      return "metric";
    case ClaimKind::kEvent:
      return "event";
    case ClaimKind::kRequests:
      return "requests";
  }
  return "?";
}

void MarkWhatWasThere(Evidence& evidence) {
  for (const IstiodStart& start : evidence.starts) {
    const auto within = [&](const std::string& replica, WallNs at) {
      return replica == start.replica && at >= start.from && at <= start.ready;
    };
    for (InferredInput& input : evidence.inputs) {
      if (input.kind != InputKind::kIstiodStarted && within(input.replica, input.at)) input.initial = true;
    }
    for (Claim& claim : evidence.claims) {
      if (within(claim.replica, claim.kind == ClaimKind::kPush ? claim.first_event : claim.at)) claim.initial = true;
    }
  }
}

bool IsKubernetesHost(std::string_view host) { return host.find(".svc.") != host.npos; }

bool IsTraffic(const InferredInput& input) {
  return input.kind == InputKind::kTraffic || input.kind == InputKind::kBehaviour;
}

bool ReadFromOwnClusterAlone(const InferredInput& input) {
  switch (input.kind) {
    case InputKind::kRemoteSecret:
    case InputKind::kMeshNetworks:
    case InputKind::kMeshConfig:
    case InputKind::kConfig:
      return true;
    case InputKind::kService:
    case InputKind::kEndpoints:
      return input.host.find(".svc.") == input.host.npos;  // of a ServiceEntry
    default:
      return false;
  }
}

void Refusals::Add(std::string_view reason, Place place, std::string_view detail) {
  constexpr size_t kShown = 5, kMostDetail = 200;
  auto it = reasons_.find(reason);
  if (it == reasons_.end()) it = reasons_.emplace(std::string(reason), Reason{}).first;
  ++it->second.count;
  if (it->second.first.size() < kShown) {
    it->second.first.emplace_back(std::move(place), std::string(detail.substr(0, kMostDetail)));
  }
}

std::string FormatWall(WallNs at) {
  constexpr int64_t kSecond = 1'000'000'000;
  int64_t whole = at / kSecond, rest = at % kSecond;
  if (rest < 0) rest += kSecond, --whole;
  std::string text = kube::FormatRfc3339(whole);
  text.pop_back();  // the Z
  return rest % 1000 == 0 ? fmt::format("{}.{:06}Z", text, rest / 1000) : fmt::format("{}.{:09}Z", text, rest);
}

WallNs ParseWall(std::string_view text) {
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' || text[16] != ':') {
    return kNoTime;
  }
  for (const size_t i : {0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18}) {
    if (!IsDigit(text[i])) return kNoTime;
  }
  const auto two = [&](size_t i) { return (text[i] - '0') * 10 + (text[i + 1] - '0'); };
  if (two(11) > 23 || two(14) > 59 || two(17) > 60) return kNoTime;
  const std::chrono::year_month_day day(std::chrono::year(two(0) * 100 + two(2)),
                                        std::chrono::month(static_cast<unsigned>(two(5))),
                                        std::chrono::day(static_cast<unsigned>(two(8))));
  if (!day.ok() || day.year() < std::chrono::year(1)) return kNoTime;
  const int64_t day_seconds = std::chrono::sys_days(day).time_since_epoch() / std::chrono::seconds(1);
  // Years that nanoseconds since 1970 can hold.
  if (day_seconds < -9'000'000'000 || day_seconds > 9'000'000'000) return kNoTime;
  int64_t seconds = day_seconds + two(11) * 3600 + two(14) * 60 + two(17);
  size_t i = 19;
  int64_t nanos = 0;
  if (text[i] == '.' || text[i] == ',') {
    int64_t scale = 100'000'000;
    for (++i; i < text.size() && IsDigit(text[i]); ++i, scale /= 10) nanos += (text[i] - '0') * scale;
  }
  if (i >= text.size()) return kNoTime;
  if (text[i] == 'Z' && i + 1 == text.size()) return seconds * 1'000'000'000 + nanos;
  if ((text[i] != '+' && text[i] != '-') || text.size() != i + 6 || text[i + 3] != ':') return kNoTime;
  for (const size_t j : {i + 1, i + 2, i + 4, i + 5}) {
    if (!IsDigit(text[j])) return kNoTime;
  }
  const int64_t offset = two(i + 1) * 3600 + two(i + 4) * 60;
  seconds += text[i] == '+' ? -offset : offset;
  return seconds * 1'000'000'000 + nanos;
}

bool ReadInteger(std::string_view text, int64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

int64_t ParseGoDuration(std::string_view text) {
  struct Unit {
    std::string_view name;
    double ns;
  };
  static constexpr Unit kUnits[] = {{"ms", 1e6}, {"\xc2\xb5s", 1e3}, {"\xce\xbcs", 1e3}, {"us", 1e3},
                                    {"ns", 1},   {"h", 3.6e12},      {"m", 6e10},        {"s", 1e9}};
  if (text == "0s" || text == "0") return 0;
  double total = 0;
  bool any = false;
  while (!text.empty()) {
    size_t i = 0;
    double number = 0, scale = 1;
    bool fraction = false;
    for (; i < text.size() && (IsDigit(text[i]) || text[i] == '.'); ++i) {
      if (text[i] == '.') {
        if (fraction) return -1;
        fraction = true;
      } else if (fraction) {
        scale /= 10;
        number += (text[i] - '0') * scale;
      } else {
        number = number * 10 + (text[i] - '0');
      }
    }
    if (i == 0 || i > 20) return -1;
    text.remove_prefix(i);
    const Unit* const unit =
        std::find_if(std::begin(kUnits), std::end(kUnits), [&](const Unit& u) { return text.starts_with(u.name); });
    if (unit == std::end(kUnits)) return -1;
    total += number * unit->ns;
    text.remove_prefix(unit->name.size());
    any = true;
  }
  return any && total < 9e18 ? static_cast<int64_t>(total + 0.5) : -1;
}

}  // namespace wavetank::importing
