#include "oracles/envoy/access_logs.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <thread>
#include <utility>

#include "absl/strings/str_split.h"
#include "envoy/config/accesslog/v3/accesslog.pb.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/extensions/access_loggers/file/v3/file.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.pb.h"

namespace wavetank::envoydiff {
namespace {

constexpr std::string_view kCaseLogs = "/logs/";
constexpr std::string_view kFilePrefix = "case-log-";

template <typename Proto>
bool MoveLogsOf(Proto* proto, const std::string& folder) {
  bool changed = false;
  for (auto& log : *proto->mutable_access_log()) {
    envoy::extensions::access_loggers::file::v3::FileAccessLog file;
    if (!log.typed_config().UnpackTo(&file)) continue;
    if (!IsCaseLog(file.path())) continue;
    file.set_path(folder + "/" + std::string(kFilePrefix) + file.path().substr(kCaseLogs.size()));
    log.mutable_typed_config()->PackFrom(file);
    changed = true;
  }
  return changed;
}

template <typename Proto>
bool MoveLogsOfFilter(google::protobuf::Any* config, const std::string& folder) {
  Proto proto;
  if (!config->Is<Proto>() || !config->UnpackTo(&proto) || !MoveLogsOf(&proto, folder)) return false;
  config->PackFrom(proto);
  return true;
}

}  // namespace

std::vector<envoy::config::listener::v3::FilterChain*> ChainsOf(envoy::config::listener::v3::Listener* listener) {
  std::vector<envoy::config::listener::v3::FilterChain*> out;
  for (auto& chain : *listener->mutable_filter_chains()) out.push_back(&chain);
  if (listener->has_default_filter_chain()) out.push_back(listener->mutable_default_filter_chain());
  return out;
}

bool IsCaseLog(std::string_view path) { return path.starts_with(kCaseLogs); }

std::string MoveCaseLogs(const std::string& bytes, const std::string& folder) {
  namespace filters = envoy::extensions::filters::network;
  envoy::config::listener::v3::Listener listener;
  if (!listener.ParseFromString(bytes)) return bytes;
  bool changed = MoveLogsOf(&listener, folder);
  for (envoy::config::listener::v3::FilterChain* chain : ChainsOf(&listener)) {
    for (auto& filter : *chain->mutable_filters()) {
      auto* config = filter.mutable_typed_config();
      changed |= MoveLogsOfFilter<filters::http_connection_manager::v3::HttpConnectionManager>(config, folder) ||
                 MoveLogsOfFilter<filters::tcp_proxy::v3::TcpProxy>(config, folder);
    }
  }
  return changed ? listener.SerializeAsString() : bytes;
}

std::vector<std::string> ComparableLines(std::string_view text) {
  static const std::pair<std::regex, const char*> kSame[] = {
      {std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"), "TIME"},
      {std::regex(R"([0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})"), "ID"},
      {std::regex(R"(session=[0-9a-f]{64})"), "session=ID"},
      {std::regex(R"(\b127\.0\.0\.1:\d+)"), "127.0.0.1:PORT"},
      {std::regex(R"(\b\d+ms\b)"), "Dms"},
      // Bytes, duration, service time.
      {std::regex(R"re( (\d+|-) (\d+|-) \d+ \d+ ")re"), " $1 $2 D S \""},
      {std::regex(R"re( (\d+|-) (\d+|-) \d+ - ")re"), " $1 $2 D - \""},
      {std::regex(R"re(("(?:[a-z_]*duration|upstream_service_time)":"?)\d+)re"), "$1D"},
      // Of connections.
      {std::regex(R"re(^(.*"- - -".*) (?:[1-9]\d*|-) (?:[1-9]\d*|-) D)re"), "$1 B B D"},
      {std::regex(R"re(^(.*"- - -".*) (?:[1-9]\d*|-) 0 D)re"), "$1 B 0 D"},
  };
  std::vector<std::string> out;
  for (const absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    if (line.empty()) continue;
    std::string same(line);
    for (const auto& [what, instead] : kSame) same = std::regex_replace(same, what, instead);
    out.push_back(std::move(same));
  }
  return out;
}

std::map<std::string, std::vector<std::string>> ReadCaseLogs(const std::string& folder) {
  using std::chrono::milliseconds;
  const auto read = [&] {
    std::map<std::string, std::string> texts;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename();
      if (!name.starts_with(kFilePrefix)) continue;
      std::ifstream in(entry.path());
      texts[std::string(kCaseLogs) + name.substr(kFilePrefix.size())] =
          std::string(std::istreambuf_iterator<char>(in), {});
    }
    return texts;
  };
  // Envoy makes the files with its configuration and writes to them every 20 ms (--file-flush-interval-msec).
  std::map<std::string, std::string> texts = read();
  for (int tries = 0; !texts.empty() && tries < 20; ++tries) {
    std::this_thread::sleep_for(milliseconds(100));
    auto more = read();
    if (more == texts) break;
    texts = std::move(more);
  }
  std::map<std::string, std::vector<std::string>> out;
  for (const auto& [path, text] : texts) {
    if (!text.empty()) out[path] = ComparableLines(text);
  }
  return out;
}

void RemoveCaseLogs(const std::string& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> old;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().filename().string().starts_with(kFilePrefix)) old.push_back(entry.path());
  }
  for (const auto& path : old) std::filesystem::remove(path, error);
}

}  // namespace wavetank::envoydiff
