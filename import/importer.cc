#include "import/importer.h"

#include <algorithm>
#include <map>
#include <memory>

#include "absl/strings/str_split.h"
#include "fmt/format.h"
#include "import/istiod/istiod_log.h"
#include "import/istiod/record_reader.h"
#include "import/text/envelope.h"
#include "import/text/line_splitter.h"

namespace wavetank::importing {
namespace {

constexpr size_t kSniffed = 64 << 10;

// "a/istiod-1.log.2" and "a/istiod-1.log" are of one process, which is called "a/istiod-1".
std::string ReplicaOf(std::string name) {
  bool cut = true;
  while (cut) {
    cut = false;
    for (const std::string_view suffix : {".log", ".txt", ".gz", "-previous", "_previous", ".previous", ".old"}) {
      if (name.size() <= suffix.size() || !name.ends_with(suffix)) continue;
      name.resize(name.size() - suffix.size());
      cut = true;
    }
    const size_t dot = name.rfind('.');
    if (dot != name.npos && dot + 1 < name.size() && dot > 0 && name.size() - dot <= 12 &&
        name.find_first_not_of("0123456789-", dot + 1) == name.npos) {
      name.resize(dot);
      cut = true;
    }
  }
  return name;
}

bool LooksLikeIstiodLog(std::string_view head) {
  Envelope envelope;
  int records = 0, lines = 0;
  for (const absl::string_view line : absl::StrSplit(absl::string_view(head.data(), head.size()), '\n')) {
    const Unwrapped unwrapped = envelope.Unwrap({line.data(), line.size()});
    if (!unwrapped.complete || unwrapped.line.empty()) continue;
    if (RecordReader::LooksLikeRecord(unwrapped.line) && ++records >= 2) return true;
    if (++lines > 500) break;
  }
  return records > 0;
}

// One file of istiod's log. kubectl logs --prefix puts several pods into one.
class IstiodFile {
 public:
  IstiodFile(std::string name, WallNs skew, Evidence& evidence)
      : name_(std::move(name)), replica_(ReplicaOf(name_)), skew_(skew), evidence_(evidence) {}

  void Read(PeekableStream& bytes) {
    LineSplitter splitter([this](std::string_view line, uint64_t number, bool cut) { Line(line, number, cut); });
    while (true) {
      const absl::StatusOr<std::string_view> piece = bytes.Next();
      if (!piece.ok()) {
        evidence_.refusals.Add("file that ends before its end", {name_, splitter.lines()},
                               std::string(piece.status().message()));
        break;
      }
      if (piece->empty()) break;
      evidence_.bytes += piece->size();
      splitter.Feed(*piece);
    }
    if (splitter.Finish()) evidence_.refusals.Add("last line without an end", {name_, splitter.lines()});
    for (auto& [pod, log] : pods_) {
      log->reader.Finish();
      log->istiod.Finish();
    }
  }

 private:
  struct Log {
    Log(IstiodFile& file, const std::string& replica)
        : istiod(replica, file.evidence_),
          reader(file.name_, file.evidence_.refusals, [this, &file](const LogRecord& r) {
            if (file.skew_ == 0) return istiod.Add(r, file.name_);
            LogRecord moved = r;
            moved.at += file.skew_;
            istiod.Add(moved, file.name_);
          }) {}
    IstiodLog istiod;
    RecordReader reader;
  };

  void Line(std::string_view line, uint64_t number, bool cut) {
    const Unwrapped unwrapped = envelope_.Unwrap(line);
    if (!unwrapped.complete) return;
    if (last_ == nullptr || unwrapped.pod != last_pod_) {
      last_pod_ = unwrapped.pod;
      std::unique_ptr<Log>& log = pods_[last_pod_];
      if (log == nullptr) log = std::make_unique<Log>(*this, last_pod_.empty() ? replica_ : last_pod_);
      last_ = log.get();
    }
    last_->reader.Line(unwrapped.line, number, cut);
  }

  const std::string name_, replica_;
  const WallNs skew_;
  Evidence& evidence_;
  Envelope envelope_;
  std::map<std::string, std::unique_ptr<Log>> pods_;
  std::string last_pod_;
  Log* last_ = nullptr;
};

WallNs SkewOf(const ImportOptions& options, const SourceFile& file) {
  WallNs skew = 0;
  for (const auto& [name, by] : options.skews) {
    if (file.source == name || file.name == name || file.name.starts_with(name + "/")) skew += by;
  }
  return skew;
}

// Which cluster a file's objects are of. A path names a source, a folder in one, or a file.
std::string ClusterOf(const ImportOptions& options, const SourceFile& file) {
  for (const auto& [name, path] : options.clusters) {
    const std::string within = file.source + "/" + file.name;
    if (file.source == path || file.name == path || file.name.starts_with(path + "/") || within.starts_with(path)) {
      return name;
    }
  }
  std::string source = file.source;
  while (source.size() > 1 && source.back() == '/') source.pop_back();
  return ReplicaOf(source.substr(source.rfind('/') + 1));
}

// A dump of a cluster is one JSON value: it is read as a whole.
void ReadKube(KubeFile kind, const SourceFile& file, const std::string& cluster, PeekableStream& bytes, Imported& out) {
  constexpr size_t kMost = size_t{1} << 30;
  std::string text;
  while (true) {
    const absl::StatusOr<std::string_view> piece = bytes.Next();
    if (!piece.ok()) {
      out.evidence.refusals.Add("file that ends before its end", {file.name, 0}, std::string(piece.status().message()));
      break;
    }
    if (piece->empty()) break;
    if (text.size() + piece->size() > kMost) {
      return out.evidence.refusals.Add("file of more than 1 GiB that must be read as a whole", {file.name, 0});
    }
    text.append(*piece);
  }
  out.evidence.bytes += text.size();
  ReadKubeFile(kind, text, cluster, file.name, out.kube, out.evidence.refusals);
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

}  // namespace

absl::StatusOr<Imported> Import(const ImportOptions& options) {
  Imported out;
  Evidence& evidence = out.evidence;
  const absl::Status walked = WalkSources(options.sources, options.limits, evidence.refusals,
                                          [&](const SourceFile& file, PeekableStream& bytes) {
                                            ++evidence.files;
                                            const std::string_view head = bytes.Peek(kSniffed);
                                            if (head.empty())
                                              return evidence.refusals.Add("empty file", {file.name, 0});
                                            if (LooksLikeIstiodLog(head))
                                              return IstiodFile(file.name, SkewOf(options, file), evidence).Read(bytes);
                                            if (const KubeFile kind = KindOfKubeFile(head); kind != KubeFile::kNone) {
                                              return ReadKube(kind, file, ClusterOf(options, file), bytes, out);
                                            }
                                            evidence.refusals.Add("file of no known kind", {file.name, 0});
                                          });
  if (!walked.ok()) return walked;
  NoteVersions(evidence);
  for (const auto& [kind, count] : out.kube.unseen) {
    evidence.notes.push_back(
        fmt::format("{} objects of kind {} are of no matter to a mesh, and not imported", count, kind));
  }
  Align(evidence);
  return out;
}

}  // namespace wavetank::importing
