#include "sim/network/corefile.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "fmt/format.h"
#include "re2/re2.h"

namespace wavetank::sim {
namespace {

using Words = std::vector<std::string>;

// caddy: caddyfile/lexer.go: words, of which quoted ones hold spaces; # begins a comment where a word would.
Words WordsOf(std::string_view line) {
  Words out;
  size_t i = 0;
  while (i < line.size()) {
    const char c = line[i];
    if (c == ' ' || c == '\t' || c == '\r') {
      ++i;
    } else if (c == '#') {
      break;
    } else if (c == '"' || c == '`') {
      const size_t end = std::min(line.find(c, i + 1), line.size());
      out.emplace_back(line.substr(i + 1, end - i - 1));
      i = end + 1;
    } else {
      const size_t end = std::min(line.find_first_of(" \t\r", i), line.size());
      out.emplace_back(line.substr(i, end - i));
      i = end;
    }
  }
  return out;
}

// No answer depends on them here: they log, count, limit, shuffle or keep.
constexpr std::string_view kWithoutAnswer[] = {
    "metadata",    "cancel",   "tls",        "timeouts", "multisocket", "reload", "nsid",    "bufsize",
    "root",        "bind",     "debug",      "trace",    "ready",       "health", "pprof",   "errors",
    "prometheus",  "log",      "dnstap",     "local",    "any",         "chaos",  "cache",   "loop",
    "loadbalance", "header",   "dnssec",     "minimal",  "autopath",    "whoami", "startup", "shutdown",
    "import",      "transfer", "proxyproto", "quic",     "grpc_server", "https",  "https3",  "shed"};
bool HasNoAnswer(std::string_view plugin) {
  return std::find(std::begin(kWithoutAnswer), std::end(kWithoutAnswer), plugin) != std::end(kWithoutAnswer);
}

// The name is the zone, or below it.
bool IsWithin(std::string_view name, std::string_view zone) {
  if (zone.empty()) return true;
  return name == zone ||
         (name.size() > zone.size() && name.ends_with(zone) && name[name.size() - zone.size() - 1] == '.');
}

std::string Lower(std::string_view text) { return absl::AsciiStrToLower(absl::string_view(text.data(), text.size())); }

std::string Undotted(std::string name) {
  while (name.ends_with('.')) name.pop_back();
  return name;
}

std::vector<std::string> ZonesOf(const Words& words, const std::vector<std::string>& otherwise) {
  std::vector<std::string> out;
  for (const std::string& word : words.empty() ? otherwise : words) out.push_back(Lower(Corefile::ZoneOf(word)));
  return out;
}

std::optional<Duration> Seconds(const std::string& text) {
  uint32_t seconds = 0;
  if (!absl::SimpleAtoi(text, &seconds)) return std::nullopt;
  return std::chrono::seconds(seconds);
}

}  // namespace

// A server's plugins that answer, each of which may stand there several times.
struct Corefile::Compiled {
  struct FallThrough {
    bool on = false;
    std::vector<std::string> zones;  // none: of all names
    bool Holds(std::string_view name) const {
      return on && (zones.empty() || std::any_of(zones.begin(), zones.end(),
                                                 [&](const std::string& zone) { return IsWithin(name, zone); }));
    }
  };
  struct Rewrite {
    enum class Kind : uint8_t { kExact, kPrefix, kSuffix, kSubstring, kRegex };
    Kind kind = Kind::kExact;
    bool goes_on = false;
    std::string from, to;
    std::unique_ptr<const re2::RE2> regex;
  };
  struct Template {
    std::vector<std::string> zones;
    std::vector<std::unique_ptr<const re2::RE2>> matches;  // one of them; none: all names
    std::vector<std::string> answers;
    bool no_such_name = false, refused = false;
    FallThrough falls_through;
  };
  struct Hosts {
    std::vector<std::string> zones;
    std::vector<std::pair<std::string, IpAddress>> entries;
    Duration ttl = 3600s;
    FallThrough falls_through;
  };
  struct Kubernetes {
    std::vector<std::string> zones, namespaces;
    FallThrough falls_through;
  };
  struct Forward {
    std::string from;
    std::vector<std::string> to, except;
  };
  std::vector<std::string> zones;
  std::vector<Rewrite> rewrites;
  std::vector<Template> templates;
  std::vector<Hosts> hosts;
  std::vector<Kubernetes> kubernetes;
  std::vector<Forward> forwards;
};

Corefile::Corefile() = default;
Corefile::~Corefile() = default;

std::string Corefile::ZoneOf(std::string zone) {
  if (const size_t scheme = zone.find("://"); scheme != zone.npos) zone.erase(0, scheme + 3);
  zone = zone.substr(0, zone.find(':'));
  while (zone.ends_with('.')) zone.pop_back();
  return zone;
}

absl::StatusOr<std::vector<Corefile::Server>> Corefile::Read(std::string_view text, bool* made_of_others) {
  *made_of_others = false;
  std::vector<Server> out;
  int depth = 0, number = 0;
  for (const absl::string_view raw : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ++number;
    Words words = WordsOf({raw.data(), raw.size()});
    if (words.empty()) continue;
    const bool opens = words.back() == "{", closes = words.front() == "}";
    if (opens) words.pop_back();
    if (closes) words.clear();
    if (depth == 0 && !closes) {
      if (words.empty() || words.front() == "import" || words.front().starts_with('(')) {
        *made_of_others = true;
        return std::vector<Server>();
      }
      out.push_back({std::move(words), {}});
      for (std::string& zone : out.back().zones) {
        while (zone.ends_with(',')) zone.pop_back();
      }
    } else if (depth == 1 && !words.empty()) {
      out.back().plugins.push_back({words.front(), {words.begin() + 1, words.end()}, {}, number});
    } else if (depth > 1 && !words.empty() && !out.back().plugins.empty()) {
      out.back().plugins.back().block.push_back(std::move(words));
    }
    depth += (opens ? 1 : 0) - (closes ? 1 : 0);
    if (depth < 0) break;
  }
  if (depth != 0)
    return absl::InvalidArgumentError(depth < 0 ? "a brace closes what none opens" : "a brace is not closed");
  return out;
}

absl::StatusOr<std::shared_ptr<const Corefile>> Corefile::Make(std::string_view text) {
  std::shared_ptr<Corefile> out(new Corefile());
  absl::StatusOr<std::vector<Server>> servers = Read(text, &out->made_of_others_);
  if (!servers.ok()) return servers.status();
  for (const Server& server : *servers) {
    // Those of other ports are asked by nobody.
    const auto asked = [](const std::string& zone) {
      const size_t port = zone.rfind(':');
      return port == zone.npos || zone.substr(port) == ":53" || zone.find("://") == port;
    };
    if (!std::any_of(server.zones.begin(), server.zones.end(), asked)) continue;
    if (absl::Status status = out->Add(server); !status.ok()) return status;
  }
  return std::shared_ptr<const Corefile>(std::move(out));
}

absl::Status Corefile::Add(const Server& server) {
  auto to = std::make_unique<Compiled>();
  to->zones = ZonesOf(server.zones, {});
  const auto note = [&](std::string what) {
    if (std::find(without_effect_.begin(), without_effect_.end(), what) == without_effect_.end())
      without_effect_.push_back(std::move(what));
  };
  const auto regex = [](const std::string& pattern) {
    auto out = std::make_unique<const re2::RE2>(pattern, re2::RE2::Quiet);
    return out->ok() ? std::move(out) : nullptr;
  };
  const auto bad = [](const Plugin& plugin, std::string_view why) {
    return absl::InvalidArgumentError(fmt::format("line {}: plugin/{}: {}", plugin.line, plugin.name, why));
  };
  const auto through = [](const Words& line) {
    return Compiled::FallThrough{true, ZonesOf({line.begin() + 1, line.end()}, {})};
  };
  for (const Plugin& plugin : server.plugins) {
    const Words& words = plugin.words;
    if (plugin.name == "reload") reloads_ = true;
    if (plugin.name == "rewrite") {  // coredns: plugin/rewrite/{rewrite,name}.go
      size_t i = 0;
      Compiled::Rewrite rewrite;
      if (i < words.size() && (words[i] == "continue" || words[i] == "stop"))
        rewrite.goes_on = words[i++] == "continue";
      if (i >= words.size() || words[i++] != "name") {
        note(fmt::format("plugin rewrite, but for names ({})", absl::StrJoin(words, " ")));
        continue;
      }
      using Kind = Compiled::Rewrite::Kind;
      constexpr std::pair<std::string_view, Kind> kKinds[] = {{"exact", Kind::kExact},
                                                              {"prefix", Kind::kPrefix},
                                                              {"suffix", Kind::kSuffix},
                                                              {"substring", Kind::kSubstring},
                                                              {"regex", Kind::kRegex}};
      if (words.size() - i > 2) {
        for (const auto& [name, kind] : kKinds) {
          if (words[i] != name) continue;
          rewrite.kind = kind;
          ++i;
          break;
        }
      }
      if (words.size() - i < 2) return bad(plugin, "too few arguments for a name rule");
      const bool pattern = rewrite.kind == Kind::kRegex || rewrite.kind == Kind::kSubstring;
      rewrite.from = pattern ? words[i] : Undotted(Lower(words[i]));
      rewrite.to = Undotted(Lower(words[i + 1]));
      if (rewrite.kind == Kind::kRegex && (rewrite.regex = regex(rewrite.from)) == nullptr)
        return bad(plugin, "invalid regular expression in a name rule: " + rewrite.from);
      to->rewrites.push_back(std::move(rewrite));  // what an answer is called afterwards nobody here looks at
    } else if (plugin.name == "template") {        // coredns: plugin/template
      if (words.size() < 2) return bad(plugin, "wrong argument count: CLASS TYPE [ZONE...]");
      const std::string type = absl::AsciiStrToUpper(words[1]);
      if (type != "A" && type != "AAAA" && type != "ANY") {
        note("plugin template for records of " + type);
        continue;
      }
      Compiled::Template made;
      made.zones = ZonesOf({words.begin() + 2, words.end()}, server.zones);
      for (const Words& line : plugin.block) {
        if (line[0] == "match") {
          for (size_t i = 1; i < line.size(); ++i) {
            made.matches.push_back(regex(line[i]));
            if (made.matches.back() == nullptr) return bad(plugin, "could not parse regex: " + line[i]);
          }
        } else if (line[0] == "answer") {
          made.answers.insert(made.answers.end(), line.begin() + 1, line.end());
        } else if (line[0] == "rcode" && line.size() > 1) {
          made.no_such_name = line[1] == "NXDOMAIN";
          made.refused = line[1] == "SERVFAIL" || line[1] == "REFUSED";
        } else if (line[0] == "fallthrough") {
          made.falls_through = through(line);
        }
      }
      to->templates.push_back(std::move(made));
    } else if (plugin.name == "hosts") {  // coredns: plugin/hosts
      Compiled::Hosts made;
      Words zones = words;
      if (!zones.empty() && zones[0].find('/') != std::string::npos) {
        note("plugin hosts from a file (" + zones[0] + ")");
        zones.erase(zones.begin());
      }
      made.zones = ZonesOf(zones, server.zones);
      for (const Words& line : plugin.block) {
        if (line[0] == "fallthrough") {
          made.falls_through = through(line);
        } else if (line[0] == "ttl" && line.size() > 1) {
          made.ttl = Seconds(line[1]).value_or(made.ttl);
        } else if (const absl::StatusOr<IpAddress> ip = IpAddress::Parse(line[0]); ip.ok()) {
          for (size_t i = 1; i < line.size(); ++i) made.entries.emplace_back(Undotted(Lower(line[i])), *ip);
        }
      }
      to->hosts.push_back(std::move(made));
    } else if (plugin.name == "kubernetes") {  // coredns: plugin/kubernetes
      Compiled::Kubernetes made;
      made.zones = ZonesOf(words, server.zones);
      for (const Words& line : plugin.block) {
        if (line[0] == "fallthrough") made.falls_through = through(line);
        if (line[0] == "namespaces") made.namespaces.assign(line.begin() + 1, line.end());
        for (const char* other : {"endpoint", "kubeconfig", "labels", "namespace_labels"}) {
          if (line[0] == other) note(fmt::format("plugin kubernetes, {}", other));
        }
      }
      to->kubernetes.push_back(std::move(made));
    } else if (plugin.name == "forward") {  // coredns: plugin/forward
      if (words.size() < 2) return bad(plugin, "wrong argument count: FROM TO...");
      Compiled::Forward made;
      made.from = Lower(ZoneOf(words[0]));
      made.to.assign(words.begin() + 1, words.end());
      for (const Words& line : plugin.block) {
        if (line[0] == "except") made.except = ZonesOf({line.begin() + 1, line.end()}, {});
      }
      to->forwards.push_back(std::move(made));
    } else if (!HasNoAnswer(plugin.name)) {
      note("plugin " + plugin.name);
    }
  }
  servers_.push_back(std::move(to));
  return absl::OkStatus();
}

Corefile::Step Corefile::Query(std::string name) const { return Ask(std::move(name), false); }
Corefile::Step Corefile::AfterServices(std::string_view name) const { return Ask(std::string(name), true); }

namespace {

// Of a template's answer "{{ .Name }} 60 IN A 10.0.0.1": what it says, where it says an address or another name.
bool TakeAnswer(const std::string& answer, Corefile::Step* out) {
  const Words words = WordsOf(answer);
  size_t i = 1;
  while (i < words.size() && (Seconds(words[i]) || absl::AsciiStrToUpper(words[i]) == "IN")) {
    if (const auto ttl = Seconds(words[i])) out->ttl = ttl;
    ++i;
  }
  if (i + 1 >= words.size()) return false;
  const std::string type = absl::AsciiStrToUpper(words[i]);
  if (type == "CNAME") {
    out->kind = Corefile::Step::Kind::kAlias;
    out->name = Undotted(Lower(words[i + 1]));
    return true;
  }
  const absl::StatusOr<IpAddress> ip = IpAddress::Parse(words[i + 1]);
  if ((type != "A" && type != "AAAA") || !ip.ok()) return false;
  out->kind = Corefile::Step::Kind::kAddresses;
  out->addresses.push_back(*ip);
  return true;
}

// Go's template as far as names take it: {{ .Name }}, {{ .Zone }}, {{ .Group.NAME }}, {{ index .Match N }}.
std::string Expand(std::string text, const std::string& name, const std::string& zone, const re2::RE2* regex) {
  std::vector<std::string> groups;
  if (regex != nullptr) {
    const int count = regex->NumberOfCapturingGroups() + 1;
    std::vector<re2::StringPiece> found(static_cast<size_t>(count));
    const std::string subject = name + ".";
    if (regex->Match(subject, 0, subject.size(), re2::RE2::UNANCHORED, found.data(), count)) {
      for (const re2::StringPiece& piece : found) groups.emplace_back(piece.data(), piece.size());
    }
  }
  static const re2::RE2* const action = new re2::RE2(R"(\{\{-?\s*(.*?)\s*-?\}\})");
  std::string out;
  re2::StringPiece rest(text);
  std::string inner;
  while (true) {
    re2::StringPiece whole[2];
    if (!action->Match(rest, 0, rest.size(), re2::RE2::UNANCHORED, whole, 2)) break;
    out.append(rest.data(), static_cast<size_t>(whole[0].data() - rest.data()));
    inner.assign(whole[1].data(), whole[1].size());
    const Words words = WordsOf(inner);
    size_t index = 0;
    if (inner == ".Name" || inner == ".Question.Name") {
      out += name + ".";
    } else if (inner == ".Zone") {
      out += zone + ".";
    } else if (inner.starts_with(".Group.") && regex != nullptr) {
      const auto& named = regex->NamedCapturingGroups();
      const auto it = named.find(inner.substr(7));
      if (it != named.end() && static_cast<size_t>(it->second) < groups.size())
        out += groups[static_cast<size_t>(it->second)];
    } else if (words.size() == 3 && words[0] == "index" && words[1] == ".Match" && absl::SimpleAtoi(words[2], &index) &&
               index < groups.size()) {
      out += groups[index];
    }
    const size_t end = static_cast<size_t>(whole[0].data() - rest.data()) + whole[0].size();
    rest.remove_prefix(end);
  }
  out.append(rest.data(), rest.size());
  return out;
}

}  // namespace

Corefile::Step Corefile::Ask(std::string name, bool after_services) const {
  Step out;
  name = Lower(name);
  // The server of the longest zone (coredns: core/dnsserver/server.go, ServeDNS).
  const Compiled* server = nullptr;
  size_t longest = 0;
  for (const std::unique_ptr<Compiled>& each : servers_) {
    for (const std::string& zone : each->zones) {
      if (!IsWithin(name, zone) || (server != nullptr && zone.size() <= longest)) continue;
      server = each.get();
      longest = zone.size();
    }
  }
  out.name = name;
  if (server == nullptr) return out;
  using Kind = Compiled::Rewrite::Kind;
  if (!after_services) {
    for (const Compiled::Rewrite& rule : server->rewrites) {
      std::string to = name;
      switch (rule.kind) {
        case Kind::kExact:
          if (name == rule.from) to = rule.to;
          break;
        case Kind::kPrefix:
          if (name.starts_with(rule.from)) to = rule.to + name.substr(rule.from.size());
          break;
        case Kind::kSuffix:
          if (name.ends_with(rule.from)) to = name.substr(0, name.size() - rule.from.size()) + rule.to;
          break;
        case Kind::kSubstring:
          to = absl::StrReplaceAll(name, {{rule.from, rule.to}});
          break;
        case Kind::kRegex: {
          // {1} stands for the first group; the pattern has to fit somewhere in "name.".
          const std::string subject = name + ".";
          const int count = rule.regex->NumberOfCapturingGroups() + 1;
          std::vector<re2::StringPiece> groups(static_cast<size_t>(count));
          if (!rule.regex->Match(subject, 0, subject.size(), re2::RE2::UNANCHORED, groups.data(), count)) break;
          to = rule.to;
          for (size_t i = 0; i < groups.size(); ++i)
            to = absl::StrReplaceAll(to, {{fmt::format("{{{}}}", i), std::string(groups[i].data(), groups[i].size())}});
          break;
        }
      }
      if (to == name) continue;
      name = Undotted(to);
      if (!rule.goes_on) break;
    }
    out.name = name;
    for (const Compiled::Template& each : server->templates) {
      const auto zone = std::find_if(each.zones.begin(), each.zones.end(),
                                     [&](const std::string& one) { return IsWithin(name, one); });
      if (zone == each.zones.end()) continue;
      const re2::RE2* matched = nullptr;
      for (const auto& regex : each.matches) {
        if (re2::RE2::PartialMatch(name + ".", *regex)) matched = regex.get();
        if (matched != nullptr) break;
      }
      if (matched == nullptr && !each.matches.empty()) {
        if (each.falls_through.Holds(name)) continue;
        out.kind = Step::Kind::kNoServer;  // SERVFAIL: no template fits, and the next plugin is not asked
        return out;
      }
      if (each.refused) return out;
      bool answered = false;
      for (const std::string& answer : each.answers)
        answered = TakeAnswer(Expand(answer, name, *zone, matched), &out) || answered;
      if (!answered) out.kind = Step::Kind::kNoSuchName;
      return out;
    }
    for (const Compiled::Hosts& each : server->hosts) {
      if (!std::any_of(each.zones.begin(), each.zones.end(), [&](const auto& zone) { return IsWithin(name, zone); }))
        continue;
      for (const auto& [host, ip] : each.entries) {
        if (host == name) out.addresses.push_back(ip);
      }
      if (!out.addresses.empty()) {
        out.kind = Step::Kind::kAddresses;
        out.ttl = each.ttl;
        return out;
      }
      if (each.falls_through.Holds(name)) continue;
      out.kind = Step::Kind::kNoSuchName;
      return out;
    }
    for (const Compiled::Kubernetes& each : server->kubernetes) {
      const std::string* zone = nullptr;
      for (const std::string& one : each.zones) {
        if (IsWithin(name, one) && (zone == nullptr || one.size() > zone->size())) zone = &one;
      }
      if (zone == nullptr) continue;
      out.kind = Step::Kind::kService;
      out.zone = *zone;
      out.falls_through = each.falls_through.Holds(name);
      out.namespaces = each.namespaces;
      return out;
    }
  }
  for (const Compiled::Forward& each : server->forwards) {
    if (!IsWithin(name, each.from) ||
        std::any_of(each.except.begin(), each.except.end(), [&](const auto& zone) { return IsWithin(name, zone); }))
      continue;
    out.kind = Step::Kind::kForward;
    for (const std::string& to : each.to) {
      if (to.find('/') != to.npos && to.find("://") == to.npos) continue;  // a resolv.conf: the node's servers
      const size_t scheme = to.find("://");
      std::string address = scheme == to.npos ? to : to.substr(scheme + 3);
      if (std::count(address.begin(), address.end(), ':') == 1) address = address.substr(0, address.find(':'));
      out.servers.push_back(std::move(address));
    }
    if (out.servers.size() < each.to.size()) out.servers.clear();
    return out;
  }
  return out;
}

}  // namespace wavetank::sim
