#include "import/log_file.h"

#include <map>
#include <memory>
#include <optional>

#include "absl/strings/str_split.h"
#include "import/access/access_log.h"
#include "import/access/pod_name.h"
#include "import/istiod/istiod_log.h"
#include "import/istiod/record_reader.h"
#include "import/source_names.h"
#include "import/text/envelope.h"
#include "import/text/line_splitter.h"

namespace wavetank::importing {
namespace {

constexpr std::string_view kProxyContainer = "istio-proxy", kIstiodContainer = "discovery";

bool ReadAccess(const std::vector<AccessFormat>& formats, std::string_view line, AccessLine& out) {
  for (const AccessFormat& format : formats) {
    if (format.Read(line, out)) return true;
  }
  return false;
}

bool LooksLikeAccess(std::string_view line) {
  return line.size() > 2 && (line[0] == '{' || (line[0] == '[' && line[1] >= '0' && line[1] <= '9'));
}

// What the agent and its Envoy say of themselves. istiod: pilot/cmd/pilot-agent, pkg/istio-agent, pkg/envoy
bool LooksLikeProxyLog(std::string_view line) {
  for (const std::string_view mark : {"\txdsproxy\t", "\tenvoy ", "\tEnvoy command: [", "\tProxy role",
                                      "\tProxy role:", "FLAG: --proxyLogLevel", "\tEffective config: "}) {
    if (line.find(mark) != line.npos) return true;
  }
  return false;
}

class LogFile {
 public:
  LogFile(LogKind kind, const std::string& path, const std::string& name, const std::string& cluster,
          std::optional<WallNs> skew, const LogReading& into)
      : kind_(kind),
        path_(path),
        name_(name),
        replica_(ReplicaOf(name)),
        skew_(skew.value_or(0)),
        dated_(skew.has_value()),
        into_(into),
        owner_(OwnerOfLog(path)) {
    owner_.pod.cluster = cluster;
    cluster_ = cluster;
  }

  void Read(PeekableStream& bytes) {
    Evidence& evidence = into_.evidence;
    LineSplitter splitter([this](std::string_view line, uint64_t number, bool cut) { Line(line, number, cut); });
    while (true) {
      const absl::StatusOr<std::string_view> piece = bytes.Next();
      if (!piece.ok()) {
        evidence.refusals.Add("file that ends before its end", {name_, splitter.lines()},
                              std::string(piece.status().message()));
        break;
      }
      if (piece->empty()) break;
      evidence.bytes += piece->size();
      splitter.Feed(*piece);
    }
    if (splitter.Finish()) evidence.refusals.Add("last line without an end", {name_, splitter.lines()});
    for (size_t i = 0; i < envelope_.Cut(); ++i)
      evidence.refusals.Add("line that the runtime cut, and whose rest is not there", {name_, splitter.lines()});
    for (auto& [key, stream] : streams_) {
      if (stream.istiod == nullptr) continue;
      stream.istiod->reader.Finish();
      stream.istiod->log.Finish();
    }
  }

 private:
  struct Istiod {
    Istiod(LogFile& file, const std::string& replica)
        : log(replica, file.into_.evidence),
          reader(file.name_, file.into_.evidence.refusals, [this, &file](const LogRecord& r) {
            if (file.skew_ == 0) return log.Add(r, file.name_);
            LogRecord moved = r;
            moved.at += file.skew_;
            log.Add(moved, file.name_);
          }) {}
    IstiodLog log;
    RecordReader reader;
  };
  struct Stream {
    std::unique_ptr<Istiod> istiod;
    std::unique_ptr<AccessLog> proxy;
  };

  void Line(std::string_view line, uint64_t number, bool cut) {
    if (line.starts_with("==== ")) {
      bool begins = false;
      LogOwner owner;
      if (ReadDumpHeading(line, owner, begins)) {
        owner.pod.cluster = cluster_;
        owner_ = begins ? owner : OwnerOfLog(path_);
        key_.clear();
        current_ = nullptr;
        return;
      }
    }
    const Unwrapped unwrapped = envelope_.Unwrap(line);
    if (!unwrapped.complete) return;
    std::string_view text = unwrapped.line;
    if (!unwrapped.pod.empty()) {
      if (current_ == nullptr || last_pod_ != unwrapped.pod || last_container_ != unwrapped.container) {
        last_pod_ = unwrapped.pod;
        last_container_ = unwrapped.container;
        Choose({{cluster_, "", last_pod_}, last_container_}, last_pod_);
      }
    } else if (PodName pod; kind_ == LogKind::kProxy && TakeSlashPrefix(text, pod)) {
      const std::string key = pod.cluster + "/" + pod.ns + "/" + pod.pod;
      if (current_ == nullptr || key != key_) Choose({pod, std::string(kProxyContainer)}, key);
    } else if (current_ == nullptr) {
      Choose(owner_, owner_.container.empty() ? replica_ : owner_.pod.ns + "/" + owner_.pod.pod);
    }
    if (current_->istiod != nullptr) return current_->istiod->reader.Line(text, number, cut);
    if (current_->proxy != nullptr) return Access(text, number, cut);
    ++into_.other_lines;
  }

  void Choose(const LogOwner& owner, const std::string& key) {
    key_ = key;
    const auto [it, fresh] = streams_.try_emplace(key + "/" + owner.container);
    current_ = &it->second;
    if (!fresh) return;
    const bool istiod = owner.container == kIstiodContainer || (owner.container.empty() && kind_ == LogKind::kIstiod);
    const bool proxy = owner.container == kProxyContainer || (owner.container.empty() && kind_ == LogKind::kProxy);
    if (istiod) {
      const std::string replica = key.empty() ? replica_ : key;
      current_->istiod = std::make_unique<Istiod>(*this, replica);
      if (dated_) into_.dated.insert(replica);
    }
    if (proxy) current_->proxy = std::make_unique<AccessLog>(owner.pod, into_.traffic, into_.evidence.refusals);
  }

  void Access(std::string_view line, uint64_t number, bool cut) {
    if (cut) return into_.evidence.refusals.Add("line of more than 1 MiB", {name_, number});
    if (line.empty()) return;
    if (ReadAccess(into_.formats, line, line_)) {
      line_.start += skew_;
      return current_->proxy->Add(line_, {name_, number});
    }
    if (LooksLikeAccess(line)) {
      return into_.evidence.refusals.Add("line of no known access log format", {name_, number}, line);
    }
    ++into_.own_lines;
  }

  const LogKind kind_;
  const std::string path_, name_, replica_;
  const WallNs skew_;
  const bool dated_;
  LogReading into_;
  LogOwner owner_;
  std::string cluster_;
  Envelope envelope_;
  std::map<std::string, Stream> streams_;
  Stream* current_ = nullptr;
  std::string key_, last_pod_, last_container_;
  AccessLine line_;
};

}  // namespace

LogKind KindOfLog(const std::string& path, std::string_view head, const std::vector<AccessFormat>& formats) {
  const LogOwner owner = OwnerOfLog(path);
  const bool log = path.ends_with(".log") || path.ends_with(".txt");
  if (log && owner.container == kProxyContainer) return LogKind::kProxy;
  if (log && owner.container == kIstiodContainer) return LogKind::kIstiod;
  Envelope envelope;
  AccessLine access;
  int records = 0, lines = 0;
  bool istiod = false;
  for (const absl::string_view raw : absl::StrSplit(absl::string_view(head.data(), head.size()), '\n')) {
    const std::string_view line(raw.data(), raw.size());
    LogOwner heading;
    bool begins = false;
    if (line.starts_with("==== ") && ReadDumpHeading(line, heading, begins)) return LogKind::kProxy;
    const Unwrapped unwrapped = envelope.Unwrap(line);
    if (!unwrapped.complete || unwrapped.line.empty()) continue;
    std::string_view text = unwrapped.line;
    if (unwrapped.container == kProxyContainer) return LogKind::kProxy;
    if (LooksLikeAccess(text) && ReadAccess(formats, text, access)) return LogKind::kProxy;
    PodName pod;
    if (text.size() > 2 && text[0] >= 'a' && text[0] <= 'z' && TakeSlashPrefix(text, pod) &&
        ReadAccess(formats, text, access)) {
      return LogKind::kProxy;
    }
    // A format that was given need not look like the known ones.
    if (formats.size() > AccessFormat::Known().size() && ReadAccess(formats, unwrapped.line, access)) {
      return LogKind::kProxy;
    }
    if (RecordReader::LooksLikeRecord(unwrapped.line)) {
      if (LooksLikeProxyLog(unwrapped.line)) return LogKind::kProxy;
      istiod = ++records > 0;
    }
    if (++lines > 500) break;
  }
  return istiod ? LogKind::kIstiod : LogKind::kNone;
}

void ReadLogFile(LogKind kind, const std::string& path, const std::string& name, const std::string& cluster,
                 std::optional<WallNs> skew, PeekableStream& bytes, LogReading into) {
  LogFile(kind, path, name, cluster, skew, into).Read(bytes);
}

}  // namespace wavetank::importing
