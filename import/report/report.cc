#include "import/report/report.h"

#include <map>
#include <set>

#include "core/base/json_text.h"
#include "core/kube/credentials/sealing.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "replay/secrets.h"

namespace wavetank::importing {
namespace {

using nlohmann::ordered_json;

void PutText(ordered_json& out, const char* key, const std::string& value) {
  if (!value.empty()) out[key] = Harmless(value);
}

// "helloworld" of "helloworld.sample.svc.cluster.local"
std::string NameInHost(const std::string& host) {
  return host.find(".svc.") == host.npos ? std::string() : host.substr(0, host.find('.'));
}

ordered_json PlaceJson(const Place& place) {
  ordered_json out = {{"file", place.file}};
  if (place.line > 0) out["line"] = place.line;
  return out;
}

// What a kind has besides. Its texts come from a source, too.
void PutExtra(ordered_json& out, const std::string& extra) {
  if (extra.empty()) return;
  const ordered_json parsed = ordered_json::parse(extra, nullptr, false);
  if (!parsed.is_object()) return;
  for (const auto& [key, value] : parsed.items()) {
    out[key] = value.is_string() ? ordered_json(Harmless(value.get<std::string>())) : value;
  }
}

ordered_json Printed(const std::string& text) { return ordered_json::parse(HarmlessPrinted(text), nullptr, false); }

// What a refused thing held, as it may stand on a terminal.
std::string OneLine(std::string_view text) {
  constexpr size_t kShown = 200;
  std::string out = Harmless(text, kShown);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  }
  return out;
}

bool HoldsPrinted(const InferredInput& input) {
  return input.kind == InputKind::kMeshConfig || input.kind == InputKind::kMeshNetworks;
}

std::string About(const InferredInput& input) {
  std::string out;
  if (input.kind == InputKind::kTraffic) {
    return fmt::format("{}{} to {}: {}", input.ns.empty() ? "" : input.ns + "/", input.name, input.host, input.detail);
  }
  if (input.kind == InputKind::kBehaviour) {
    return fmt::format("{}{}: {}", input.ns.empty() ? "" : input.ns + "/", input.name, input.detail);
  }
  if (!input.object_kind.empty() && input.kind == InputKind::kConfig) out += input.object_kind + "/";
  if (!input.host.empty()) {
    out += input.host;
  } else if (!input.name.empty()) {
    out += input.ns.empty() ? input.name : input.ns + "/" + input.name;
  }
  if (!input.cluster.empty() && input.clusters.empty()) out += (out.empty() ? "" : " in ") + input.cluster;
  for (const auto& [cluster, effect] : input.clusters) out += fmt::format(" {} {}", cluster, effect);
  if (input.clusters.empty() && !input.change.empty()) out += " " + input.change;
  return out;
}

}  // namespace

std::string Harmless(std::string_view text, size_t most) {
  std::string out(text.substr(0, most));
  if (replay::HoldsSecret(text)) return "(a text with a key or a token in it)";
  out = kube::SealedText(out);
  // Whatever a source wrote, what is printed is text.
  return JsonText(nlohmann::json(out)).size() == out.size() + 2
             ? out
             : ParseJson(JsonText(nlohmann::json(out))).get<std::string>();
}

std::string HarmlessPrinted(std::string_view text) {
  const nlohmann::json parsed = ParseJson(text);
  return JsonText(parsed.is_discarded() ? nlohmann::json(Harmless(text)) : replay::Redacted(kube::Sealed(parsed)));
}

ordered_json ToJson(const InferredInput& input) {
  ordered_json out = {{"at", FormatWall(input.at)}, {"kind", NameOf(input.kind)}};
  if (input.earliest != input.latest) {
    out["earliest"] = FormatWall(input.earliest);
    out["latest"] = FormatWall(input.latest);
  }
  PutText(out, "objectKind", input.kind == InputKind::kRemoteSecret ? "Secret" : input.object_kind);
  PutText(out, "cluster", input.cluster);
  PutText(out, "namespace", input.ns);
  PutText(out, "name", input.name.empty() ? NameInHost(input.host) : input.name);
  PutText(out, "host", input.host);
  PutText(out, "change", input.change);
  if (!input.clusters.empty()) {
    ordered_json clusters = ordered_json::array();
    for (const auto& [cluster, effect] : input.clusters) clusters.push_back({{"cluster", cluster}, {"change", effect}});
    out["clusters"] = std::move(clusters);
  }
  if (HoldsPrinted(input) && !input.detail.empty()) {
    out["value"] = Printed(input.detail);
  } else {
    PutText(out, "detail", input.detail);
  }
  PutExtra(out, input.extra);
  if (input.initial) out["initial"] = true;
  out["inferred"] = true;
  PutText(out, "replica", input.replica);
  out["from"] = PlaceJson(input.place);
  for (const Place& place : input.also) out["alsoFrom"].push_back(PlaceJson(place));
  return out;
}

ordered_json ToJson(const Claim& claim) {
  ordered_json out;
  if (claim.at != kNoTime) out["at"] = FormatWall(claim.at);  // none: when the dump was made
  out["kind"] = NameOf(claim.kind);
  if (claim.kind == ClaimKind::kPush) {
    out["trigger"] = claim.full ? "full" : "incremental";
    out["events"] = claim.events;
    out["firstEvent"] = FormatWall(claim.first_event);
    out["lastEvent"] = FormatWall(claim.last_event);
    if (!claim.config.empty()) {
      out["config"] = claim.config;
      out["moreConfigs"] = claim.more;
    } else {
      out["reason"] = claim.reason;
    }
    PutText(out, "version", claim.version);
    if (claim.services >= 0) out["services"] = claim.services;
    if (claim.connected >= 0) out["connected"] = claim.connected;
    if (!claim.sent.empty()) out["sent"] = claim.sent;
  }
  PutText(out, "name", claim.name);
  PutText(out, "type", claim.type);
  PutText(out, "detail", claim.detail);
  if (claim.kind == ClaimKind::kClusters || claim.kind == ClaimKind::kHeld) out["count"] = claim.count;
  PutExtra(out, claim.extra);
  if (claim.initial) out["initial"] = true;
  PutText(out, "replica", claim.replica);
  out["from"] = PlaceJson(claim.place);
  return out;
}

ordered_json ToJson(const Evidence& evidence) {
  ordered_json out;
  ordered_json& summary = out["summary"];
  summary = {{"files", evidence.files}, {"bytes", evidence.bytes}};
  summary["istiods"] = ordered_json::array();
  for (const IstiodRun& run : evidence.runs) {
    ordered_json one = {
        {"replica", run.replica}, {"from", FormatWall(run.from)}, {"to", FormatWall(run.to)}, {"lines", run.lines}};
    PutText(one, "cluster", run.cluster);
    PutText(one, "version", run.version);
    PutText(one, "pod", run.pod);
    summary["istiods"].push_back(std::move(one));
  }
  out["inputs"] = ordered_json::array();
  for (const InferredInput& input : evidence.inputs) out["inputs"].push_back(ToJson(input));
  out["claims"] = ordered_json::array();
  for (const Claim& claim : evidence.claims) out["claims"].push_back(ToJson(claim));
  out["leftOut"] = ordered_json::array();
  for (const auto& [reason, of] : evidence.refusals.reasons()) {
    ordered_json one = {{"reason", reason}, {"count", of.count}, {"first", ordered_json::array()}};
    for (const auto& [place, detail] : of.first) {
      ordered_json at = PlaceJson(place);
      PutText(at, "detail", detail);
      one["first"].push_back(std::move(at));
    }
    out["leftOut"].push_back(std::move(one));
  }
  out["notes"] = evidence.notes;
  return out;
}

std::string Timeline(const Evidence& evidence) {
  std::string out;
  for (const InferredInput& input : evidence.inputs) {
    if (input.initial) continue;
    std::string places = Text(input.place);
    for (const Place& place : input.also) places += ", " + Text(place);
    out +=
        fmt::format("{}  {:<18} {}  ({})\n", FormatWall(input.at), NameOf(input.kind), Harmless(About(input)), places);
  }
  return out;
}

std::string TrafficSummary(const Traffic& traffic) {
  if (traffic.empty()) return {};
  uint64_t requests = 0;
  std::set<std::string> clients;
  for (const auto& [key, flow] : traffic.flows) {
    for (const auto& [begin, window] : flow.windows) requests += window.requests;
    if (!key.client.pod.empty()) clients.insert(key.client.ns + "/" + key.client.pod);
  }
  return fmt::format("access logs: {} to {}, {} lines; {} requests of {} proxies, in {} flows\n",
                     FormatWall(traffic.from), FormatWall(traffic.to), traffic.lines, requests, clients.size(),
                     traffic.flows.size());
}

std::string Summary(const Evidence& evidence) {
  std::string out;
  std::set<std::string> clusters, proxies;
  std::map<std::string_view, size_t> kinds;
  size_t initial = 0;
  for (const InferredInput& input : evidence.inputs) {
    if (!input.cluster.empty()) clusters.insert(input.cluster);
    if (input.kind == InputKind::kProxyConnected) proxies.insert(input.name + "." + input.ns);
    if (input.initial) {
      ++initial;
    } else {
      ++kinds[NameOf(input.kind)];
    }
  }
  size_t pushes = 0;
  for (const Claim& claim : evidence.claims) pushes += claim.kind == ClaimKind::kPush ? 1 : 0;
  for (const IstiodRun& run : evidence.runs) {
    out += fmt::format("{}: {} to {}, {} records{}{}\n", run.replica, FormatWall(run.from), FormatWall(run.to),
                       run.lines, run.cluster.empty() ? "" : ", of cluster " + run.cluster,
                       run.version.empty() ? "" : ", version " + Harmless(run.version, 80));
  }
  out += fmt::format("clusters: {}\nproxies: {}\n",
                     clusters.empty() ? "none named" : fmt::format("{}", fmt::join(clusters, ", ")), proxies.size());
  std::vector<std::string> counted;
  for (const auto& [kind, count] : kinds) counted.push_back(fmt::format("{} {}", count, kind));
  out += fmt::format("inputs inferred: {}{}\n", counted.empty() ? "none" : fmt::format("{}", fmt::join(counted, ", ")),
                     initial == 0 ? "" : fmt::format("; {} lines say what was there at the start", initial));
  out += fmt::format("claims: {}, of which {} pushes\n", evidence.claims.size(), pushes);
  for (const auto& [reason, of] : evidence.refusals.reasons()) {
    const bool shown = !of.first.empty();
    const std::string detail = shown ? OneLine(of.first.front().second) : "";
    out += fmt::format("left out: {} x {} (first {}){}\n", of.count, reason, shown ? Text(of.first.front().first) : "",
                       detail.empty() ? "" : ": " + detail);
  }
  for (const std::string& note : evidence.notes) out += "note: " + Harmless(note) + "\n";
  return out;
}

}  // namespace wavetank::importing
