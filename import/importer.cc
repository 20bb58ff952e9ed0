#include "import/importer.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/kube/types.h"
#include "fmt/format.h"
#include "import/access/access_format.h"
#include "import/access/traffic_inputs.h"
#include "import/clocks.h"
#include "import/envoy/proxy_files.h"
#include "import/log_file.h"
#include "import/metrics/metric_claims.h"
#include "import/source_names.h"
#include "import/text/envelope.h"
#include "import/text/line_order.h"
#include "import/text/line_splitter.h"
#include "import/text/log_store.h"

namespace wavetank::importing {
namespace {

constexpr size_t kSniffed = 64 << 10;

// What the options say of files, and what these are called.
class Named {
 public:
  explicit Named(const ImportOptions& options) : options_(options), names_(options.sources) {
    for (const auto& [cluster, path] : options.clusters) clusters_.Add(path);
    for (const auto& [path, by] : options.skews) skews_.Add(path);
  }
  // With the options that name it looked up, read or not.
  struct File {
    std::string name, path, cluster;  // `cluster` as it was said; empty: it was not
    std::string cluster_or_source;
    std::optional<WallNs> skew;
  };
  File Of(const SourceFile& file) {
    File out{names_.Shown(file), PathOf(file), {}, {}, {}};
    if (const auto i = clusters_.Closest(file)) out.cluster = options_.clusters[*i].first;
    if (const auto i = skews_.Closest(file)) out.skew = options_.skews[*i].second;
    out.cluster_or_source = out.cluster.empty() ? names_.ClusterOf(file.source) : out.cluster;
    return out;
  }
  // An option that names no file says something else than was meant.
  absl::Status AllUsed() const {
    for (const size_t i : clusters_.Unused()) {
      const auto& [cluster, path] = options_.clusters[i];
      return absl::InvalidArgumentError(
          fmt::format("--cluster {}={}: nothing that was read is called so, or lies there; name a source, a folder or "
                      "a file in one",
                      cluster, path));
    }
    for (const size_t i : skews_.Unused()) {
      return absl::InvalidArgumentError(fmt::format(
          "--skew {}=...: nothing that was read is called so, or lies there; name a source, a folder or a file in one",
          options_.skews[i].first));
    }
    return absl::OkStatus();
  }

 private:
  const ImportOptions& options_;
  const SourceNames names_;
  NamedPaths clusters_, skews_;
};

// A dump of a cluster, or of a proxy, is one JSON value: it is read as a whole. False: it is too large.
bool ReadWhole(const Named::File& file, PeekableStream& bytes, Imported& out, std::string& text) {
  constexpr size_t kMost = size_t{1} << 30;
  while (true) {
    const absl::StatusOr<std::string_view> piece = bytes.Next();
    if (!piece.ok()) {
      out.evidence.refusals.Add("file that ends before its end", {file.name, 0}, std::string(piece.status().message()));
      break;
    }
    if (piece->empty()) break;
    if (text.size() + piece->size() > kMost) {
      out.evidence.refusals.Add("file of more than 1 GiB that must be read as a whole", {file.name, 0});
      return false;
    }
    text.append(*piece);
  }
  out.evidence.bytes += text.size();
  return true;
}

// Pods by name and by address, as dumps and histories tell of them.
PodDirectory PodsOf(const KubeEvidence& kube) {
  PodDirectory out;
  for (const std::vector<KubeChange>* changes : {&kube.state, &kube.history}) {
    for (const KubeChange& change : *changes) {
      if (change.kind != "Pod." || change.deleted) continue;
      const nlohmann::json& object = At(change.body, "object");
      const nlohmann::json& labels = At(At(object, "metadata"), "labels");
      PodFacts facts{{change.cluster, change.ns, change.name}, kube::AppOf(labels), kube::VersionOf(labels)};
      if (const std::string ip = wavetank::Text(At(object, "status"), "podIP"); !ip.empty()) out.by_ip[ip] = facts;
      const auto [begin, end] = out.by_name.equal_range(change.name);
      if (std::none_of(begin, end, [&](const auto& known) { return known.second.name == facts.name; })) {
        out.by_name.emplace(change.name, std::move(facts));
      }
    }
  }
  return out;
}

// Two dumps of one object that differ: the last stands, and the one before is named.
void NoteContradictions(const KubeEvidence& kube, Refusals& refusals) {
  std::map<std::tuple<std::string, std::string, std::string, std::string>, const KubeChange*> last;
  for (const KubeChange& change : kube.state) {
    const KubeChange*& known = last[{change.cluster, change.kind, change.ns, change.name}];
    if (known != nullptr && (known->body != change.body || known->packed != change.packed)) {
      refusals.Add("object that another dump tells otherwise, whose version stands", known->place,
                   fmt::format("{} {}{}{}: see {}", change.kind.substr(0, change.kind.find('.')), change.ns,
                               change.ns.empty() ? "" : "/", change.name, Text(change.place)));
    }
    known = &change;
  }
}

// What components of Kubernetes said is a claim: it follows from what was done.
void ClaimEvents(const KubeEvidence& kube, Evidence& evidence) {
  for (const KubeEvidence::Event& event : kube.events) {
    Claim& claim = evidence.claims.emplace_back();
    claim.kind = ClaimKind::kEvent;
    claim.at = event.at;
    claim.name = event.kind + "/" + (event.ns.empty() ? "" : event.ns + "/") + event.name;
    claim.type = event.cluster;
    claim.detail = event.message;
    claim.place = event.place;
    claim.extra = JsonText(
        nlohmann::ordered_json{{"reason", event.reason}, {"component", event.component}, {"count", event.count}});
  }
}

void NoteVersions(Evidence& evidence) {
  std::map<std::string, std::string> versions;
  for (const IstiodRun& run : evidence.runs) {
    if (!run.version.empty()) versions.try_emplace(run.version, run.replica);
  }
  for (const auto& [version, replica] : versions) {
    if (version.starts_with("1.18") || version.starts_with("unknown")) continue;
    evidence.notes.push_back(
        fmt::format("{} is istiod {}: its lines are read as 1.18's, and what they say is simulated as 1.18.2 does it",
                    replica, version));
  }
}

void AddSamples(MetricsFile kind, const std::string& text, const Named::File& file, Refusals& refusals,
                MetricClaims& metrics) {
  ReadSamples(kind, text, file.name, refusals, [&](Sample&& sample) {
    if (sample.at != kNoTime) sample.at += file.skew.value_or(0);
    metrics.Add(sample, file.cluster_or_source, file.name);
  });
}

// An API server's clock, and that of whoever writes events, may be wrong, too.
void AddObjects(KubeFile kind, std::string_view text, const Named::File& file, Imported& out, size_t lines = 0) {
  KubeEvidence& kube = out.kube;
  const size_t history = kube.history.size(), untold = kube.untold.size(), events = kube.events.size();
  ReadKubeFile(kind, text, file.cluster_or_source, file.name, kube, out.evidence.refusals, lines);
  const WallNs skew = file.skew.value_or(0);
  if (skew == 0) return;
  for (size_t i = history; i < kube.history.size(); ++i) kube.history[i].at += skew;
  for (size_t i = untold; i < kube.untold.size(); ++i) kube.untold[i].at += skew;
  for (size_t i = events; i < kube.events.size(); ++i) kube.events[i].at += skew;
}

// Each once, however it is written, and whoever links to it.
std::vector<std::string> Distinct(const std::vector<std::string>& sources, std::vector<std::string>& notes) {
  std::vector<std::string> out;
  std::set<std::string> seen;
  for (const std::string& source : sources) {
    std::error_code error;
    const std::filesystem::path real = std::filesystem::weakly_canonical(source, error);
    if (source == "-" || error || seen.insert(real.string()).second) {
      out.push_back(source);
    } else {
      notes.push_back(fmt::format("{} is named twice; it is read once", source));
    }
  }
  return out;
}

// Of a rotated log its first file may tell which cluster's it is.
void NameClustersOfRotations(Evidence& evidence) {
  std::map<std::string, std::string> clusters;
  for (const IstiodRun& run : evidence.runs) {
    if (!run.cluster.empty()) clusters[run.replica] = run.cluster;
  }
  for (IstiodRun& run : evidence.runs) {
    if (run.cluster.empty()) run.cluster = clusters[run.replica];
  }
}

// Two files of one process that overlap, or one that was named twice, tell the same.
void CountOnce(Evidence& evidence) {
  const auto once = [](auto& all, const auto& key_of) {
    std::map<decltype(key_of(all.front())), std::string> told;  // and by which file
    const size_t before = all.size();
    std::erase_if(all, [&](const auto& one) {
      const auto [it, fresh] = told.try_emplace(key_of(one), one.place.file);
      return !fresh && it->second != one.place.file;
    });
    return before - all.size();
  };
  const size_t inputs = once(evidence.inputs, [](const InferredInput& input) {
    return std::tuple(input.replica, input.kind, input.at, input.cluster, input.ns, input.name, input.host,
                      input.object_kind, input.change, input.detail, input.extra);
  });
  const size_t claims = once(evidence.claims, [](const Claim& claim) {
    return std::tuple(claim.replica, claim.kind, claim.at, claim.name, claim.type, claim.detail, claim.config,
                      claim.reason, claim.events, claim.count, claim.extra);
  });
  if (inputs + claims == 0) return;
  evidence.notes.push_back(
      fmt::format("{} inputs and {} claims are told by two files; they count once", inputs, claims));
}

// An audit log, some lines at a time: it may be larger than what is held of a dump.
void AddAuditLines(const Named::File& file, PeekableStream& bytes, Imported& out) {
  constexpr size_t kPiece = 16 << 20, kLongest = size_t{1} << 30;
  std::string text;
  size_t lines = 0, ends = 0;  // behind the last whole line
  const auto read = [&](size_t end) {
    const std::string_view whole = std::string_view(text).substr(0, end);
    AddObjects(KubeFile::kAuditLines, whole, file, out, lines);
    lines += static_cast<size_t>(std::count(whole.begin(), whole.end(), '\n'));
    text.erase(0, end);
    ends = 0;
  };
  while (true) {
    const absl::StatusOr<std::string_view> piece = bytes.Next();
    if (!piece.ok()) {
      out.evidence.refusals.Add("file that ends before its end", {file.name, 0}, std::string(piece.status().message()));
    }
    if (!piece.ok() || piece->empty()) break;
    out.evidence.bytes += piece->size();
    if (const size_t end = piece->rfind('\n'); end != piece->npos) ends = text.size() + end + 1;
    text.append(*piece);
    if (text.size() >= kPiece && ends > 0) read(ends);
    if (text.size() < kLongest) continue;
    out.evidence.refusals.Add("line of more than 1 GiB; what follows is not read", {file.name, lines + 1});
    return;
  }
  if (!text.empty()) read(text.size());
}

class OneText : public ByteStream {
 public:
  explicit OneText(std::string_view text) : text_(text) {}
  absl::StatusOr<std::string_view> Next() override { return std::exchange(text_, {}); }

 private:
  std::string_view text_;
};

std::string WithoutPodPrefixes(std::string_view text) {
  std::string out;
  while (!text.empty()) out.append(WithoutPodPrefix(TakeLine(text))).append("\n");
  return out;
}

// What was recognised and is of no use.
void NoteUnread(const KubeEvidence& kube, uint64_t mute, uint64_t own_lines, uint64_t other_lines, Evidence& evidence) {
  for (const auto& [kind, count] : kube.unseen) {
    evidence.notes.push_back(
        fmt::format("{} objects of kind {} are of no matter to a mesh, and not imported", count, kind));
  }
  if (mute > 0) {
    evidence.notes.push_back(fmt::format("{} files of a bug report say nothing that a mesh is made of", mute));
  }
  if (own_lines > 0) {
    evidence.notes.push_back(
        fmt::format("{} lines of proxies' logs are their agent's and Envoy's own, and not imported", own_lines));
  }
  if (other_lines > 0) {
    evidence.notes.push_back(
        fmt::format("{} lines are of containers that are neither istiod nor a proxy, and not imported", other_lines));
  }
}

}  // namespace

absl::StatusOr<Imported> Import(const ImportOptions& given) {
  Imported out;
  ImportOptions options = given;
  options.sources = Distinct(given.sources, out.evidence.notes);
  out.kube.keep_secrets = options.keep_secrets;
  Evidence& evidence = out.evidence;
  std::vector<AccessFormat> formats;
  for (const std::string& text : options.access_formats) {
    absl::StatusOr<AccessFormat> format = AccessFormat::Parse(text);
    if (!format.ok()) return format.status();
    formats.push_back(*std::move(format));
  }
  formats.insert(formats.end(), AccessFormat::Known().begin(), AccessFormat::Known().end());
  uint64_t own_lines = 0, other_lines = 0, mute = 0;
  MetricClaims metrics;
  Named named(options);
  std::set<std::string> dated;
  const auto visit = [&](const SourceFile& visited, PeekableStream& bytes) {
    ++evidence.files;
    const Named::File file = named.Of(visited);
    const std::string_view head = bytes.Peek(kSniffed);
    if (head.empty()) return evidence.refusals.Add("empty file", {file.name, 0});
    std::string text;
    if (const ProxyFile kind = KindOfProxyFile(file.path, head); kind != ProxyFile::kNone) {
      mute += kind == ProxyFile::kMute ? 1 : 0;
      if (kind != ProxyFile::kMute && ReadWhole(file, bytes, out, text)) {
        ReadProxyFile(kind, text, file.path, file.name, file.cluster_or_source, evidence);
      }
      return;
    }
    if (const LogStoreFile form = KindOfLogStore(head); form != LogStoreFile::kNone) {
      if (!ReadWhole(file, bytes, out, text)) return;
      const StoredLog stored = ReadLogStore(form, text);
      if (stored.streams.empty()) evidence.refusals.Add("answer of a log store without lines", {file.name, 0});
      for (const std::string& note : stored.notes) evidence.notes.push_back(file.name + ": " + note);
      for (const size_t line : stored.unread)
        evidence.refusals.Add("line that is no record of a log store", {file.name, line});
      for (const StoredLines& lines : stored.streams) {
        OneText whole(lines.text);
        PeekableStream stream(whole);
        const LogKind kind = KindOfLog(file.path, stream.Peek(kSniffed), formats);
        if (kind == LogKind::kNone) {
          // An API server may write its audit log to its output.
          const std::string alone = WithoutPodPrefixes(lines.text);
          const KubeFile audit = KindOfKubeFile(std::string_view(alone).substr(0, kSniffed));
          if (audit == KubeFile::kAudit || audit == KubeFile::kAuditLines) {
            AddObjects(audit, alone, file, out);
            continue;
          }
          evidence.refusals.Add("lines of a log store of no known kind", {file.name, 0}, lines.pod);
          continue;
        }
        ReadLogFile(kind, file.path, file.name, file.cluster, file.skew, stream,
                    {formats, evidence, out.traffic, own_lines, other_lines, dated});
      }
      return;
    }
    if (const MetricsFile kind = KindOfMetricsFile(head); kind != MetricsFile::kNone) {
      if (ReadWhole(file, bytes, out, text)) AddSamples(kind, text, file, evidence.refusals, metrics);
      return;
    }
    if (const LogKind kind = KindOfLog(file.path, head, formats); kind != LogKind::kNone) {
      const LogReading into{formats, evidence, out.traffic, own_lines, other_lines, dated};
      const LineOrder order = OrderOf(head);
      if (order == LineOrder::kForward) {
        return ReadLogFile(kind, file.path, file.name, file.cluster, file.skew, bytes, into);
      }
      if (!ReadWhole(file, bytes, out, text)) return;
      evidence.notes.push_back(
          fmt::format("{}: its lines are {}; they are read in the order of their times, and line numbers count so",
                      file.name, order == LineOrder::kBackward ? "newest first" : "in no order"));
      text = Sorted(text, order);
      OneText whole(text);
      PeekableStream sorted(whole);
      return ReadLogFile(kind, file.path, file.name, file.cluster, file.skew, sorted, into);
    }
    if (const KubeFile kind = KindOfKubeFile(head); kind != KubeFile::kNone) {
      if (kind == KubeFile::kAuditLines) return AddAuditLines(file, bytes, out);
      if (ReadWhole(file, bytes, out, text)) AddObjects(kind, text, file, out);
      return;
    }
    evidence.refusals.Add("file of no known kind", {file.name, 0});
  };
  const absl::Status walked = WalkSources(options.sources, options.limits, evidence.refusals, visit, options.waits);
  if (!walked.ok()) return walked;
  if (absl::Status used = named.AllUsed(); !used.ok()) return used;
  if (out.kube.mixed) {
    const KubeEvidence::Mixed& mixed = *out.kube.mixed;
    return absl::InvalidArgumentError(
        fmt::format("{} and {} are of two clusters ({} has another uid there), and both are taken for '{}'; say which "
                    "folder or file "
                    "is whose: --cluster NAME=PATH, for each",
                    Text(mixed.one), Text(mixed.other), mixed.what, mixed.cluster));
  }
  MarkWhatWasThere(evidence);
  metrics.Claim(evidence);
  ClaimEvents(out.kube, evidence);
  NoteContradictions(out.kube, evidence.refusals);
  if (const uint64_t taken = TakeUntoldFromDumps(out.kube, evidence.refusals); taken > 0) {
    evidence.notes.push_back(
        fmt::format("{} audit events tell no object (level Metadata, patches): it is that of the dumps", taken));
  }
  if (const uint64_t taken = evidence.runs.empty() ? TakeSecretsForReadable(out.kube) : 0; taken > 0) {
    evidence.notes.push_back(fmt::format(
        "{} remote Secrets come without their kubeconfigs: they are taken for readable ones of the clusters that they "
        "name",
        taken));
  }
  NoteVersions(evidence);
  NoteUnread(out.kube, mute, own_lines, other_lines, evidence);
  NameClustersOfRotations(evidence);
  CountOnce(evidence);
  AlignClocks(evidence, [&](const std::string& replica) { return dated.contains(replica); });
  InferTraffic(out.traffic, PodsOf(out.kube), evidence);
  Align(evidence);
  NoteLongSilence(evidence);
  return out;
}

std::vector<std::string> WhatIsMissing(const Imported& imported) {
  const auto claims = [&](std::initializer_list<ClaimKind> kinds) {
    return std::any_of(imported.evidence.claims.begin(), imported.evidence.claims.end(), [&](const Claim& claim) {
      return std::find(kinds.begin(), kinds.end(), claim.kind) != kinds.end();
    });
  };
  const struct {
    bool there;
    const char* words;
  } sources[] = {
      {!imported.kube.state.empty(), "objects (kubectl get -A -o yaml): addresses, ports and specifications"},
      {!imported.kube.history.empty(),
       "audit logs or a recorded watch (kubectl get -w --output-watch-events -o json): what objects were before"},
      {!imported.evidence.runs.empty(), "logs of istiod: when it saw changes, and what it pushed"},
      {!imported.traffic.empty(), "access logs of proxies: who asked whom, and what became of it"},
      {claims({ClaimKind::kHeld}), "config dumps of proxies (with ?include_eds): what they held"},
      {claims({ClaimKind::kMetric, ClaimKind::kRequests}),
       "metrics (a range query): how much of it there was, over time"},
  };
  std::vector<std::string> out;
  for (const auto& source : sources) {
    if (!source.there) out.emplace_back(source.words);
  }
  return out;
}

}  // namespace wavetank::importing
