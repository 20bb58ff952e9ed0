#include "check/cause/anonymise.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "absl/strings/str_split.h"
#include "core/base/ip.h"
#include "core/base/json_access.h"
#include "fakes/envoy/envoy.h"
#include "fmt/format.h"
#include "sim/inputs/input.h"
#include "sim/world.h"

namespace wavetank::check {
namespace {

using nlohmann::json;

// Words that decide what something is, and say nothing about whose it is.
const std::set<std::string, std::less<>>& OwnWords() {
  static const auto* const words = new std::set<std::string, std::less<>>{"istio",
                                                                          "istiod",
                                                                          "istio-system",
                                                                          "istio-proxy",
                                                                          "istio-ca-root-cert",
                                                                          "istio-eastwestgateway",
                                                                          "eastwestgateway",
                                                                          "istio-ingressgateway",
                                                                          "ingressgateway",
                                                                          "ingress",
                                                                          "gateway",
                                                                          "cacerts",
                                                                          "default",
                                                                          "kube-system",
                                                                          "kube-public",
                                                                          "kube-node-lease",
                                                                          "kubernetes",
                                                                          "kube-dns",
                                                                          "svc",
                                                                          "cluster",
                                                                          "local",
                                                                          "mesh",
                                                                          "root",
                                                                          "true",
                                                                          "false",
                                                                          "enabled",
                                                                          "disabled",
                                                                          "http",
                                                                          "http2",
                                                                          "https",
                                                                          "grpc",
                                                                          "tcp",
                                                                          "tls",
                                                                          "udp",
                                                                          "mongo",
                                                                          "mysql",
                                                                          "redis",
                                                                          "web",
                                                                          "status-port",
                                                                          "com",
                                                                          "org",
                                                                          "net",
                                                                          "io",
                                                                          "example",
                                                                          "present",
                                                                          "deleted",
                                                                          "rotated",
                                                                          "broken",
                                                                          "none",
                                                                          "new",
                                                                          "ext-authz",
                                                                          "all"};
  return *words;
}

bool IsVersion(std::string_view word) {
  return word.size() > 1 && word[0] == 'v' &&
         std::all_of(word.begin() + 1, word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Values that are no names, whatever they hold.
bool IsFixed(std::string_view key) {
  static const std::set<std::string_view> keys = {"kind",     "apiVersion", "type",  "protocol", "mode",
                                                  "state",    "fault",      "image", "effect",   "method",
                                                  "operator", "profile",    "root"};
  return keys.contains(key);
}

bool WordChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_'; }

class Names {
 public:
  void Add(const std::string& word) {
    const bool number = std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (word.size() < 2 || number || OwnWords().contains(word) || IsVersion(word) || word.starts_with("istio") ||
        word.starts_with("kube-") || !std::all_of(word.begin(), word.end(), WordChar))
      return;
    words_.emplace(word, "");
  }
  void AddHost(const std::string& host) {
    for (const auto label : absl::StrSplit(host, '.')) Add(std::string(label));
  }

  // What objects, and inputs around them, name.
  void Collect(const json& value, std::string_view key, bool labels) {
    if (value.is_string()) {
      const std::string& text = value.get_ref<const std::string&>();
      if (labels || key == "name" || key == "namespace" || key == "cluster" || key == "of" || key == "in" ||
          key == "app" || key == "network" || key == "region" || key == "zone" || key == "flow" || key == "node" ||
          key == "controlPlane")
        Add(text);
      if (key == "host" || key == "hosts") AddHost(text);
      return;
    }
    if (value.is_array()) {
      // Ports have names that say protocols.
      if (key == "ports") return;
      for (const json& item : value) Collect(item, key, labels);
    } else if (value.is_object()) {
      const bool of_labels = key == "labels" || key == "matchLabels" || key == "selector" || key == "matchSelector";
      for (const auto& [name, item] : value.items()) Collect(item, name, of_labels);
    }
  }

  void Number() {
    size_t number = 0;
    const int width = words_.size() >= 1000 ? 5 : 3;
    for (auto& [word, other] : words_) other = fmt::format("n{:0{}}", ++number, width);
    number = 0;
    for (auto& [address, other] : addresses_) {
      ++number;
      other = IpAddress::V4(static_cast<uint32_t>(0xc6120000u + number)).ToString();  // 198.18.0.0/15: benchmarks
    }
  }
  size_t names() const { return words_.size(); }
  size_t addresses() const { return addresses_.size(); }

  // Words between signs; of those with hyphens also the longest parts that are names.
  std::string Replaced(const std::string& text, bool learn = false) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
      if (!WordChar(text[at])) {
        out += text[at++];
        continue;
      }
      size_t end = at;
      while (end < text.size() && (WordChar(text[end]) || (text[end] == '.' && AddressAt(text, at, end)))) ++end;
      const std::string word = text.substr(at, end - at);
      at = end;
      if (const absl::StatusOr<IpAddress> ip = IpAddress::Parse(word); ip.ok() && ip->is_v4()) {
        if (Public(*ip) && learn) addresses_.emplace(*ip, "");
        const auto other = addresses_.find(*ip);
        out += other == addresses_.end() ? word : other->second;
      } else {
        out += Word(word);
      }
    }
    return out;
  }

  json Replaced(const json& value, std::string_view key, bool learn) {
    if (value.is_string()) return IsFixed(key) ? value : json(Replaced(value.get<std::string>(), learn));
    if (value.is_array()) {
      json out = json::array();
      for (const json& item : value) out.push_back(Replaced(item, key, learn));
      return out;
    }
    if (!value.is_object()) return value;
    json out = json::object();
    // Keys are words of the format, but for maps by cluster (a remote Secret's data).
    const bool by_name = key == "data" || key == "stringData" || key == "timing";
    for (const auto& [name, item] : value.items())
      out[by_name && key != "timing" ? Replaced(name) : name] = Replaced(item, name, learn);
    return out;
  }

 private:
  static bool AddressAt(const std::string& text, size_t from, size_t dot) {
    return std::all_of(text.begin() + static_cast<std::ptrdiff_t>(from),
                       text.begin() + static_cast<std::ptrdiff_t>(dot),
                       [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; }) &&
           dot + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[dot + 1])) != 0;
  }
  static bool Public(const IpAddress& ip) {
    const auto v4 = static_cast<uint32_t>(ip.low());
    const uint32_t a = v4 >> 24, b = (v4 >> 16) & 0xff;
    return !(a == 10 || a == 127 || a == 0 || a >= 224 || (a == 172 && b >= 16 && b < 32) || (a == 192 && b == 168) ||
             (a == 169 && b == 254) || (a == 100 && b >= 64 && b < 128) || (a == 240));
  }
  std::string Word(const std::string& word) const {
    if (const auto it = words_.find(word); it != words_.end()) return it->second;
    if (OwnWords().contains(word)) return word;
    std::vector<std::string> parts = absl::StrSplit(word, '-');
    std::string out;
    for (size_t i = 0; i < parts.size();) {
      size_t taken = 0;
      std::string other;
      for (size_t n = parts.size() - i; n >= 1 && taken == 0; --n) {
        std::string some = parts[i];
        for (size_t k = 1; k < n; ++k) some += "-" + parts[i + k];
        if (const auto it = words_.find(some); it != words_.end()) {
          taken = n;
          other = it->second;
        }
      }
      out += (i == 0 ? "" : "-") + (taken > 0 ? other : parts[i]);
      i += std::max<size_t>(taken, 1);
    }
    return out;
  }

  std::map<std::string, std::string, std::less<>> words_;
  std::map<IpAddress, std::string> addresses_;
};

absl::StatusOr<Outcome> RunToEnd(const Story& story) {
  absl::StatusOr<std::unique_ptr<sim::World>> world = Begin(story);
  if (!world.ok()) return world.status();
  Outcome out;
  Subscription requests = (*world)->commons().on_request.Add([&](const sim::TrafficRecord& t) {
    ++out.sent;
    out.failed += t.record.code >= 200 && t.record.code < 400 && t.server != nullptr ? 0 : 1;
  });
  for (const replay::LogInput& input : story.inputs) {
    (*world)->RunUntil(input.at);
    const absl::StatusOr<sim::Input> again = sim::Input::Parse(input.kind, input.body);
    if (!again.ok() || !(*world)->Do(*again).ok()) ++out.refused;
  }
  (*world)->RunUntil(story.end);
  (*world)->RunUntilSettled((*world)->Now() + 2min);
  requests.Cancel();
  for (const sim::PodProcess* pod : (*world)->Pods()) {
    if (pod->envoy() == nullptr) continue;
    ++out.proxies;
    out.endpoints += pod->envoy()->Endpoints().size();
  }
  return out;
}

}  // namespace

absl::StatusOr<Anonymised> Anonymise(const Story& story) {
  Names names;
  names.Collect(At(story.header.world, "clusters"), "clusters", false);
  for (const replay::LogInput& input : story.inputs) names.Collect(input.body, "", false);
  // Once to learn the addresses, once to replace.
  for (const replay::LogInput& input : story.inputs) names.Replaced(input.body, "", true);
  names.Number();
  Anonymised out;
  out.story = story;
  out.story.header.scenario_name = "anonymised";
  out.story.header.scenario_text.clear();
  out.story.header.world = names.Replaced(story.header.world, "", false);
  for (replay::LogInput& input : out.story.inputs) input.body = names.Replaced(input.body, "", false);
  out.names = names.names();
  out.addresses = names.addresses();
  const absl::StatusOr<Outcome> before = RunToEnd(story);
  if (!before.ok()) return before.status();
  const absl::StatusOr<Outcome> after = RunToEnd(out.story);
  if (!after.ok()) return after.status();
  out.before = *before;
  out.after = *after;
  return out;
}

}  // namespace wavetank::check
