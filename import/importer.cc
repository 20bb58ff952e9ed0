#include "import/importer.h"

#include <algorithm>
#include <initializer_list>
#include <map>
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
#include "import/text/envelope.h"
#include "import/text/line_order.h"
#include "import/text/line_splitter.h"
#include "import/text/log_store.h"

namespace wavetank::importing {
namespace {

constexpr size_t kSniffed = 64 << 10;

WallNs SkewOf(const ImportOptions& options, const SourceFile& file) {
  WallNs skew = 0;
  for (const auto& [name, by] : options.skews) {
    if (file.source == name || file.name == name || file.name.starts_with(name + "/")) skew += by;
  }
  return skew;
}

// With the folders above it, which say whose it is.
std::string PathOf(const SourceFile& file) {
  const bool single = file.source == file.name || file.source.ends_with("/" + file.name);
  return single ? file.source : file.source + "/" + file.name;
}

// Which cluster a file is said to be of. A path names a source, a folder in one, or a file. Empty: it is not said.
std::string NamedCluster(const ImportOptions& options, const SourceFile& file) {
  for (const auto& [name, path] : options.clusters) {
    const std::string within = file.source + "/" + file.name;
    if (file.source == path || file.name == path || file.name.starts_with(path + "/") || within.starts_with(path)) {
      return name;
    }
  }
  return {};
}
std::string ClusterOf(const ImportOptions& options, const SourceFile& file) {
  if (std::string named = NamedCluster(options, file); !named.empty()) return named;
  std::string source = file.source;
  while (source.size() > 1 && source.back() == '/') source.pop_back();
  return ReplicaOf(source.substr(source.rfind('/') + 1));
}

// A dump of a cluster, or of a proxy, is one JSON value: it is read as a whole. False: it is too large.
bool ReadWhole(const SourceFile& file, PeekableStream& bytes, Imported& out, std::string& text) {
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

void AddSamples(MetricsFile kind, const std::string& text, const ImportOptions& options, const SourceFile& file,
                Refusals& refusals, MetricClaims& metrics) {
  const std::string cluster = ClusterOf(options, file);
  const WallNs skew = SkewOf(options, file);
  ReadSamples(kind, text, file.name, refusals, [&](Sample&& sample) {
    if (sample.at != kNoTime) sample.at += skew;
    metrics.Add(sample, cluster, file.name);
  });
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

absl::StatusOr<Imported> Import(const ImportOptions& options) {
  Imported out;
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
  const auto visit = [&](const SourceFile& file, PeekableStream& bytes) {
    ++evidence.files;
    const std::string_view head = bytes.Peek(kSniffed);
    if (head.empty()) return evidence.refusals.Add("empty file", {file.name, 0});
    const std::string path = PathOf(file);
    std::string text;
    if (const ProxyFile kind = KindOfProxyFile(path, head); kind != ProxyFile::kNone) {
      mute += kind == ProxyFile::kMute ? 1 : 0;
      if (kind != ProxyFile::kMute && ReadWhole(file, bytes, out, text)) {
        ReadProxyFile(kind, text, path, file.name, ClusterOf(options, file), evidence);
      }
      return;
    }
    if (const LogStoreFile form = KindOfLogStore(head); form != LogStoreFile::kNone) {
      if (!ReadWhole(file, bytes, out, text)) return;
      const StoredLog stored = ReadLogStore(form, text);
      if (stored.streams.empty()) evidence.refusals.Add("answer of a log store without lines", {file.name, 0});
      for (const size_t line : stored.unread)
        evidence.refusals.Add("line that is no record of a log store", {file.name, line});
      for (const StoredLines& lines : stored.streams) {
        OneText whole(lines.text);
        PeekableStream stream(whole);
        const LogKind kind = KindOfLog(path, stream.Peek(kSniffed), formats);
        if (kind == LogKind::kNone) {
          // An API server may write its audit log to its output.
          if (const std::string alone = WithoutPodPrefixes(lines.text); KindOfKubeFile(alone) == KubeFile::kAudit) {
            ReadKubeFile(KubeFile::kAudit, alone, ClusterOf(options, file), file.name, out.kube, evidence.refusals);
            continue;
          }
          evidence.refusals.Add("lines of a log store of no known kind", {file.name, 0}, lines.pod);
          continue;
        }
        ReadLogFile(kind, path, file.name, NamedCluster(options, file), SkewOf(options, file), stream,
                    {formats, evidence, out.traffic, own_lines, other_lines});
      }
      return;
    }
    if (const MetricsFile kind = KindOfMetricsFile(head); kind != MetricsFile::kNone) {
      if (ReadWhole(file, bytes, out, text)) AddSamples(kind, text, options, file, evidence.refusals, metrics);
      return;
    }
    if (const LogKind kind = KindOfLog(path, head, formats); kind != LogKind::kNone) {
      const LogReading into{formats, evidence, out.traffic, own_lines, other_lines};
      const std::string cluster = NamedCluster(options, file);
      const LineOrder order = OrderOf(head);
      if (order == LineOrder::kForward) {
        return ReadLogFile(kind, path, file.name, cluster, SkewOf(options, file), bytes, into);
      }
      if (!ReadWhole(file, bytes, out, text)) return;
      evidence.notes.push_back(
          fmt::format("{}: its lines are {}; they are read in the order of their times, and line numbers count so",
                      file.name, order == LineOrder::kBackward ? "newest first" : "in no order"));
      text = Sorted(text, order);
      OneText whole(text);
      PeekableStream sorted(whole);
      return ReadLogFile(kind, path, file.name, cluster, SkewOf(options, file), sorted, into);
    }
    if (const KubeFile kind = KindOfKubeFile(head); kind != KubeFile::kNone) {
      if (ReadWhole(file, bytes, out, text)) {
        ReadKubeFile(kind, text, ClusterOf(options, file), file.name, out.kube, evidence.refusals);
      }
      return;
    }
    evidence.refusals.Add("file of no known kind", {file.name, 0});
  };
  const absl::Status walked = WalkSources(options.sources, options.limits, evidence.refusals, visit);
  if (!walked.ok()) return walked;
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
  AlignClocks(evidence, [&](const std::string& replica) {
    return std::any_of(options.skews.begin(), options.skews.end(), [&](const auto& skew) {
      return replica.starts_with(ReplicaOf(skew.first.substr(skew.first.rfind('/') + 1)));
    });
  });
  InferTraffic(out.traffic, PodsOf(out.kube), evidence);
  Align(evidence);
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
