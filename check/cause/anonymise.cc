#include "check/cause/anonymise.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <set>

#include "absl/strings/str_split.h"
#include "core/base/ip.h"
#include "core/base/json_access.h"
#include "fakes/envoy/envoy.h"
#include "fmt/format.h"
#include "sim/inputs/input.h"
#include "sim/world.h"
#include "sim/world_site.h"

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
      // Ports have names that say protocols; variables have names that programs look for.
      if (key == "ports" || key == "env") return;
      for (const json& item : value) Collect(item, key, labels);
    } else if (value.is_object()) {
      const bool of_labels = key == "labels" || key == "matchLabels" || key == "selector" || key == "matchSelector";
      for (const auto& [name, item] : value.items()) Collect(item, name, of_labels);
    }
  }

  // `set`: which of many; all of them begin differently.
  void CollectAddresses(const json& value) {
    if (value.is_string())
      return EachWord(
          value.get_ref<const std::string&>(),
          [this](const std::string& word) {
            if (const absl::StatusOr<IpAddress> ip = IpAddress::Parse(word); ip.ok() && ip->is_v4() && Public(*ip))
              addresses_.emplace(*ip, "");
          },
          [](char) {});
    if (!value.is_structured()) return;
    for (const json& item : value) CollectAddresses(item);
  }

  void Number(size_t set) {
    constexpr std::string_view kLetters = "bcdfghjklmpqrstvwxz";
    size_t number = 0;
    const int width = words_.size() >= 1000 ? 5 : 3;
    std::string mark;
    for (size_t rest = set; rest > 0; rest /= kLetters.size()) mark += kLetters[rest % kLetters.size()];
    // Between the words that stay: default, istio-..., kube-....
    const auto gap = [](std::string_view word) {
      return word < "default" ? 'a' : word < "istio" ? 'e' : word < "kube" ? 'j' : 'n';
    };
    for (auto& [word, other] : words_) {
      // "app-b" goes on from "app", whose pods' names do so, too: which of them comes first is a matter of a hash.
      std::string_view parent = word;
      auto known = words_.end();
      while (known == words_.end() && parent.rfind('-') != parent.npos) {
        parent = parent.substr(0, parent.rfind('-'));
        known = words_.find(parent);
      }
      ++number;
      other = known == words_.end()
                  ? fmt::format("{}{}{:0{}}", gap(word), mark, number, width)
                  : fmt::format("{}-{}{:0{}}", known->second, kLetters[set % kLetters.size()], number, width);
    }
    number = 0;
    for (auto& [address, other] : addresses_) {
      ++number;
      other = IpAddress::V4(static_cast<uint32_t>(0xc6120000u + number)).ToString();  // 198.18.0.0/15: benchmarks
    }
  }
  size_t names() const { return words_.size(); }
  size_t addresses() const { return addresses_.size(); }

  // Words between signs; of those with hyphens also the longest parts that are names.
  std::string Replaced(const std::string& text) const {
    std::string out;
    EachWord(
        text,
        [&](const std::string& word) {
          const absl::StatusOr<IpAddress> ip = IpAddress::Parse(word);
          if (!ip.ok() || !ip->is_v4()) {
            out += Word(word);
            return;
          }
          const auto other = addresses_.find(*ip);
          out += other == addresses_.end() ? word : other->second;
        },
        [&](char sign) { out += sign; });
    return out;
  }

  void Rename(Outcome& outcome) const {
    for (std::vector<std::string>& look : outcome.places) {
      for (std::string& place : look) place = Replaced(place);
      std::sort(look.begin(), look.end());
    }
  }

  json Replaced(const json& value, std::string_view key) const {
    if (value.is_string()) return IsFixed(key) ? value : json(Replaced(value.get<std::string>()));
    if (value.is_array()) {
      json out = json::array();
      for (const json& item : value) {
        out.push_back(Replaced(item, key));
        if (key == "env" && item.is_object() && item.contains("name")) out.back()["name"] = item["name"];
      }
      return out;
    }
    if (!value.is_object()) return value;
    json out = json::object();
    // Keys are words of the format, but for maps by cluster (a remote Secret's data).
    const bool by_name = key == "data" || key == "stringData" || key == "timing";
    for (const auto& [name, item] : value.items())
      out[by_name && key != "timing" ? Replaced(name) : name] = Replaced(item, name);
    return out;
  }

 private:
  // Words and, between them, signs, in their order.
  template <class OnWord, class OnSign>
  static void EachWord(const std::string& text, OnWord on_word, OnSign on_sign) {
    for (size_t at = 0; at < text.size();) {
      if (!WordChar(text[at])) {
        on_sign(text[at++]);
        continue;
      }
      size_t end = at;
      while (end < text.size() && (WordChar(text[end]) || (text[end] == '.' && AddressAt(text, at, end)))) ++end;
      on_word(text.substr(at, end - at));
      at = end;
    }
  }
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

// Pods of a cluster by namespace and application, and the nodes that they are on.
std::vector<std::string> Places(const sim::World& world) {
  std::vector<std::string> out;
  for (const sim::WorldCluster& cluster : world.options().clusters) {
    const auto* const site = world.FindSite(cluster.name);
    if (site == nullptr) continue;
    for (const auto& [name, pod] : site->pods()) {
      const kube::Object& object = *pod->pod();
      const auto app = object.meta.labels.find("app");
      out.push_back(fmt::format("{}/{}/{} on {}", cluster.name, name.ns,
                                app == object.meta.labels.end() ? "" : app->second,
                                Text(At(object.body, "spec"), "nodeName")));
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

absl::StatusOr<Outcome> RunToEnd(const Story& story) {
  absl::StatusOr<std::unique_ptr<sim::World>> world = Begin(story);
  if (!world.ok()) return world.status();
  Outcome out;
  Subscription requests = (*world)->commons().on_request.Add([&](const sim::TrafficRecord& t) {
    ++out.sent;
    out.failed += sim::Answered(t) ? 0 : 1;
  });
  constexpr size_t kLooks = 64;
  const size_t each = 1 + story.inputs.size() / kLooks;
  for (size_t i = 0; i < story.inputs.size(); ++i) {
    (*world)->RunUntil(story.inputs[i].at);
    if (i % each == each - 1) out.places.push_back(Places(**world));
    const absl::StatusOr<sim::Input> again = sim::Input::Parse(story.inputs[i].kind, story.inputs[i].body);
    if (!again.ok() || !(*world)->Do(*again).ok()) ++out.refused;
  }
  (*world)->RunUntil(story.end);
  (*world)->RunUntilSettled((*world)->Now() + 2min);
  requests.Cancel();
  out.places.push_back(Places(**world));
  for (const sim::PodProcess* pod : (*world)->Pods()) {
    if (pod->envoy() == nullptr) continue;
    ++out.proxies;
    out.endpoints += pod->envoy()->Endpoints().size();
  }
  return out;
}

// Of two samples of one distribution.
bool ByChance(int64_t a, int64_t of_a, int64_t b, int64_t of_b) {
  if (a == b) return true;
  const double all = static_cast<double>(of_a + of_b), share = static_cast<double>(a + b) / std::max(all, 1.0);
  const double deviation = std::sqrt(
      share * (1 - share) *
      (1.0 / std::max<double>(static_cast<double>(of_a), 1) + 1.0 / std::max<double>(static_cast<double>(of_b), 1)));
  return std::abs(static_cast<double>(a) / std::max<double>(static_cast<double>(of_a), 1) -
                  static_cast<double>(b) / std::max<double>(static_cast<double>(of_b), 1)) <= 3 * deviation;
}

}  // namespace

bool Alike(const Outcome& a, const Outcome& b) {
  // Some may be on their way when it ends.
  const bool as_many = std::abs(a.sent - b.sent) * 100 <= std::max(a.sent, b.sent);
  return as_many && a.refused == b.refused && a.proxies == b.proxies && a.endpoints == b.endpoints &&
         a.places == b.places && ByChance(a.failed, a.sent, b.failed, b.sent);
}

absl::StatusOr<Anonymised> Anonymise(const Story& story, size_t tries) {
  Names names;
  names.Collect(At(story.header.world, "clusters"), "clusters", false);
  for (const replay::LogInput& input : story.inputs) names.Collect(input.body, "", false);
  for (const replay::LogInput& input : story.inputs) names.CollectAddresses(input.body);
  const absl::StatusOr<Outcome> before = RunToEnd(story);
  if (!before.ok()) return before.status();
  Anonymised best;
  for (size_t set = 0; set < std::max<size_t>(tries, 1); ++set) {
    names.Number(set);
    Anonymised out;
    out.story = story;
    out.story.header.scenario_name = "anonymised";
    out.story.header.scenario_text.clear();
    out.story.header.world = names.Replaced(story.header.world, "");
    for (replay::LogInput& input : out.story.inputs) input.body = names.Replaced(input.body, "");
    out.names = names.names();
    out.addresses = names.addresses();
    absl::StatusOr<Outcome> after = RunToEnd(out.story);
    if (!after.ok()) return after.status();
    out.before = *before;
    names.Rename(out.before);
    out.after = *std::move(after);
    out.tries = set + 1;
    const bool alike = Alike(out.before, out.after);
    if (alike || set == 0) best = std::move(out);
    best.tries = set + 1;
    if (alike) break;
  }
  return best;
}

}  // namespace wavetank::check
