#include "sim/network/corefile.h"

#include <fnmatch.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/json_access.h"
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
  using Notes = std::vector<std::string>;  // each once
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
    bool refused = false;
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

  // A plugin as written. What of it has no effect goes into `note`. InvalidArgument: CoreDNS does not read it.
  absl::Status Add(const Plugin& plugin, const std::vector<std::string>& server_zones, const Files* files, Notes& note);
  absl::Status AddRewrite(const Plugin& plugin, Notes& note);
  absl::Status AddTemplate(const Plugin& plugin, const std::vector<std::string>& server_zones, Notes& note);
  absl::Status AddHosts(const Plugin& plugin, const std::vector<std::string>& server_zones, const Files* files,
                        Notes& note);
  void AddKubernetes(const Plugin& plugin, const std::vector<std::string>& server_zones, Notes& note);
  absl::Status AddForward(const Plugin& plugin);

  std::string Rewritten(std::string name) const;
  // Each: whether the plugin says the last word about the name, which is in `*out` then.
  bool AnswersByTemplate(const std::string& name, Step* out) const;
  bool AnswersByHosts(const std::string& name, Step* out) const;
  bool AnswersByServices(const std::string& name, Step* out) const;
  bool Forwards(const std::string& name, Step* out) const;
};

Corefile::Corefile() = default;
Corefile::~Corefile() = default;

std::string Corefile::ZoneOf(std::string zone) {
  if (const size_t scheme = zone.find("://"); scheme != zone.npos) zone.erase(0, scheme + 3);
  zone = zone.substr(0, zone.find(':'));
  while (zone.ends_with('.')) zone.pop_back();
  return zone;
}

Corefile::Files Corefile::FilesOf(const kube::Object* coredns, const kube::Object* custom) {
  Files out;
  for (const auto& [map, folder] : {std::pair(coredns, ""), {custom, "custom/"}}) {
    if (map == nullptr || !At(map->body, "data").is_object()) continue;
    for (const auto& [key, value] : map->body["data"].items()) out[folder + key] = TextOf(value);
  }
  return out;
}

namespace {

constexpr std::string_view kFolder = "/etc/coredns/";
constexpr int kMostImports = 1000;  // a file that imports itself ends somewhere

// A path as Files knows it; one that is not absolute is meant from `folder` within.
std::string WithinFolder(std::string path, std::string_view folder = {}) {
  if (path.starts_with(kFolder)) return path.substr(kFolder.size());
  if (path.starts_with('/')) return path;
  if (path.starts_with("./")) path.erase(0, 2);
  return std::string(folder) + path;
}

struct TextLine {
  Words words;
  std::string place;
  std::string folder;  // of its file, "custom/"
};

// The lines of a file, with what they import in place of the imports. Snippets are left out, and kept for imports.
class Assembly {
 public:
  explicit Assembly(const Corefile::Files* files) : files_(files) {}

  absl::Status Add(std::string_view text, const std::string& file) {
    int depth = 0, number = 0;
    std::vector<TextLine>* snippet = nullptr;
    for (const absl::string_view raw : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
      TextLine line{WordsOf({raw.data(), raw.size()}), fmt::format("line {}", ++number),
                    file.substr(0, file.rfind('/') + 1)};
      if (line.words.empty()) continue;
      if (!file.empty()) line.place = fmt::format("{}, {}", file, line.place);
      const bool opens = line.words.back() == "{", closes = line.words.front() == "}";
      const std::string& first = line.words.front();
      if (depth == 0 && opens && first.starts_with('(') && first.ends_with(')')) {
        snippet = &snippets_[first.substr(1, first.size() - 2)];
        snippet->clear();
      } else if (snippet != nullptr && !(closes && depth == 1)) {
        snippet->push_back(std::move(line));
      } else if (snippet == nullptr) {
        if (absl::Status status = Take(std::move(line)); !status.ok()) return status;
      } else {
        snippet = nullptr;
      }
      depth += (opens ? 1 : 0) - (closes ? 1 : 0);
      if (depth < 0) return absl::InvalidArgumentError("a brace closes what none opens");
    }
    return depth == 0 ? absl::OkStatus() : absl::InvalidArgumentError("a brace is not closed");
  }

  std::vector<TextLine> lines;

 private:
  absl::Status Take(TextLine line) {
    if (line.words.front() != "import") {
      lines.push_back(std::move(line));
      return absl::OkStatus();
    }
    const auto wrong = [&](std::string_view why) {
      return absl::InvalidArgumentError(fmt::format("{}: {}", line.place, why));
    };
    if (line.words.size() != 2) return wrong("import takes one argument");
    if (++imports_ > kMostImports) return wrong("imports lead round in a circle");
    const std::string& what = line.words[1];
    if (const auto snippet = snippets_.find(what); snippet != snippets_.end()) {
      const std::vector<TextLine> of_snippet = snippet->second;
      for (const TextLine& each : of_snippet) {
        if (absl::Status status = Take(each); !status.ok()) return status;
      }
      return absl::OkStatus();
    }
    if (files_ == nullptr) return absl::OkStatus();
    const std::string pattern = WithinFolder(what, line.folder);
    const auto stars = std::count(pattern.begin(), pattern.end(), '*');
    const auto marks = std::count(pattern.begin(), pattern.end(), '?');
    if (stars > 1 || marks > 1 || pattern.find('[') != pattern.npos)
      return wrong(fmt::format("Glob pattern may only contain one wildcard (*), but has others: {}", what));
    bool any = stars + marks > 0;  // that such a pattern fits no file CoreDNS only warns of
    for (const auto& [path, text] : *files_) {
      if (fnmatch(pattern.c_str(), path.c_str(), FNM_PATHNAME) != 0) continue;
      any = true;
      if (absl::Status status = Add(text, path); !status.ok()) return status;
    }
    return any ? absl::OkStatus() : wrong("File to import not found: " + what);
  }

  const Corefile::Files* const files_;
  std::map<std::string, std::vector<TextLine>> snippets_;
  int imports_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<Corefile::Server>> Corefile::Read(std::string_view text, const Files* files) {
  Assembly assembly(files);
  if (absl::Status status = assembly.Add(text, ""); !status.ok()) return status;
  std::vector<Server> out;
  int depth = 0;
  for (auto& [words, place, folder] : assembly.lines) {
    const bool opens = words.back() == "{", closes = words.front() == "}";
    if (opens) words.pop_back();
    if (closes) words.clear();
    if (depth == 0 && !closes) {
      out.push_back({std::move(words), {}});
      for (std::string& zone : out.back().zones) {
        while (zone.ends_with(',')) zone.pop_back();
      }
    } else if (depth == 1 && !words.empty()) {
      out.back().plugins.push_back({words.front(), {words.begin() + 1, words.end()}, {}, place});
    } else if (depth > 1 && !words.empty() && !out.back().plugins.empty()) {
      out.back().plugins.back().block.push_back(std::move(words));
    }
    depth += (opens ? 1 : 0) - (closes ? 1 : 0);
  }
  return out;
}

absl::StatusOr<std::shared_ptr<const Corefile>> Corefile::Make(std::string_view text, const Files* files) {
  std::shared_ptr<Corefile> out(new Corefile());
  absl::StatusOr<std::vector<Server>> servers = Read(text, files);
  if (!servers.ok()) return servers.status();
  for (const Server& server : *servers) {
    // Those of other ports are asked by nobody.
    const auto asked = [](const std::string& zone) {
      const size_t port = zone.rfind(':');
      return port == zone.npos || zone.substr(port) == ":53" || zone.find("://") == port;
    };
    if (!std::any_of(server.zones.begin(), server.zones.end(), asked)) continue;
    if (absl::Status status = out->Add(server, files); !status.ok()) return status;
  }
  return std::shared_ptr<const Corefile>(std::move(out));
}

absl::Status Corefile::Add(const Server& server, const Files* files) {
  auto to = std::make_unique<Compiled>();
  to->zones = ZonesOf(server.zones, {});
  for (const Plugin& plugin : server.plugins) {
    if (plugin.name == "reload") reloads_ = true;
    if (absl::Status status = to->Add(plugin, server.zones, files, without_effect_); !status.ok()) return status;
  }
  servers_.push_back(std::move(to));
  return absl::OkStatus();
}

namespace {

void Note(std::string what, std::vector<std::string>& notes) {
  if (std::find(notes.begin(), notes.end(), what) == notes.end()) notes.push_back(std::move(what));
}

absl::Status Bad(const Corefile::Plugin& plugin, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("{}: plugin/{}: {}", plugin.place, plugin.name, why));
}

// Null: it is none.
std::unique_ptr<const re2::RE2> RegexOf(const std::string& pattern) {
  auto out = std::make_unique<const re2::RE2>(pattern, re2::RE2::Quiet);
  return out->ok() ? std::move(out) : nullptr;
}

Words Rest(const Words& line) { return {line.begin() + 1, line.end()}; }

}  // namespace

absl::Status Corefile::Compiled::Add(const Plugin& plugin, const std::vector<std::string>& server_zones,
                                     const Files* files, Notes& note) {
  if (plugin.name == "rewrite") return AddRewrite(plugin, note);
  if (plugin.name == "template") return AddTemplate(plugin, server_zones, note);
  if (plugin.name == "forward") return AddForward(plugin);
  if (plugin.name == "hosts") return AddHosts(plugin, server_zones, files, note);
  if (plugin.name == "kubernetes") {
    AddKubernetes(plugin, server_zones, note);
  } else if (!HasNoAnswer(plugin.name)) {
    Note("plugin " + plugin.name, note);
  }
  return absl::OkStatus();
}

// coredns: plugin/rewrite/{rewrite,name}.go. What an answer is called afterwards nobody here looks at.
absl::Status Corefile::Compiled::AddRewrite(const Plugin& plugin, Notes& note) {
  using Kind = Rewrite::Kind;
  constexpr std::pair<std::string_view, Kind> kKinds[] = {{"exact", Kind::kExact},
                                                          {"prefix", Kind::kPrefix},
                                                          {"suffix", Kind::kSuffix},
                                                          {"substring", Kind::kSubstring},
                                                          {"regex", Kind::kRegex}};
  const Words& words = plugin.words;
  size_t i = 0;
  Rewrite rewrite;
  if (i < words.size() && (words[i] == "continue" || words[i] == "stop")) rewrite.goes_on = words[i++] == "continue";
  if (i >= words.size() || words[i++] != "name") {
    Note(fmt::format("plugin rewrite, but for names ({})", absl::StrJoin(words, " ")), note);
    return absl::OkStatus();
  }
  if (words.size() - i > 2) {
    const auto kind =
        std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& each) { return each.first == words[i]; });
    if (kind != std::end(kKinds)) {
      rewrite.kind = kind->second;
      ++i;
    }
  }
  if (words.size() - i < 2) return Bad(plugin, "too few arguments for a name rule");
  const bool pattern = rewrite.kind == Kind::kRegex || rewrite.kind == Kind::kSubstring;
  rewrite.from = pattern ? words[i] : Undotted(Lower(words[i]));
  rewrite.to = Undotted(Lower(words[i + 1]));
  if (rewrite.kind == Kind::kRegex && (rewrite.regex = RegexOf(rewrite.from)) == nullptr)
    return Bad(plugin, "invalid regular expression in a name rule: " + rewrite.from);
  rewrites.push_back(std::move(rewrite));
  return absl::OkStatus();
}

// coredns: plugin/template
absl::Status Corefile::Compiled::AddTemplate(const Plugin& plugin, const std::vector<std::string>& server_zones,
                                             Notes& note) {
  if (plugin.words.size() < 2) return Bad(plugin, "wrong argument count: CLASS TYPE [ZONE...]");
  const std::string type = absl::AsciiStrToUpper(plugin.words[1]);
  if (type != "A" && type != "AAAA" && type != "ANY") {
    Note("plugin template for records of " + type, note);
    return absl::OkStatus();
  }
  Template& made = templates.emplace_back();
  made.zones = ZonesOf({plugin.words.begin() + 2, plugin.words.end()}, server_zones);
  for (const Words& line : plugin.block) {
    if (line[0] == "match") {
      for (const std::string& pattern : Rest(line)) {
        made.matches.push_back(RegexOf(pattern));
        if (made.matches.back() == nullptr) return Bad(plugin, "could not parse regex: " + pattern);
      }
    } else if (line[0] == "answer") {
      made.answers.insert(made.answers.end(), line.begin() + 1, line.end());
    } else if (line[0] == "rcode" && line.size() > 1) {
      made.refused = line[1] == "SERVFAIL" || line[1] == "REFUSED";
    } else if (line[0] == "fallthrough") {
      made.falls_through = {true, ZonesOf(Rest(line), {})};
    }
  }
  return absl::OkStatus();
}

// coredns: plugin/hosts. The first word is a file's path, whatever it looks like; those within the plugin's braces come
// to its lines.
absl::Status Corefile::Compiled::AddHosts(const Plugin& plugin, const std::vector<std::string>& server_zones,
                                          const Files* files, Notes& note) {
  Hosts& made = hosts.emplace_back();
  const auto add = [&](const Words& line) {
    const absl::StatusOr<IpAddress> ip = IpAddress::Parse(line[0]);
    if (!ip.ok()) return;
    for (const std::string& host : Rest(line)) made.entries.emplace_back(Undotted(Lower(host)), *ip);
  };
  Words of = plugin.words;
  if (!of.empty()) {
    const auto file = files == nullptr ? Files::const_iterator() : files->find(WithinFolder(of[0]));
    if (files != nullptr && file == files->end()) Note("plugin hosts from a file (" + of[0] + ")", note);
    if (files != nullptr && file != files->end()) {
      for (const absl::string_view raw : absl::StrSplit(file->second, '\n')) {
        if (const Words line = WordsOf({raw.data(), raw.size()}); !line.empty()) add(line);
      }
    }
    of.erase(of.begin());
  }
  made.zones = ZonesOf(of, server_zones);
  for (const Words& line : plugin.block) {
    if (line[0] == "fallthrough") {
      made.falls_through = {true, ZonesOf(Rest(line), {})};
    } else if (line[0] == "ttl" && line.size() > 1) {
      made.ttl = Seconds(line[1]).value_or(made.ttl);
    } else if (line[0] != "reload" && line[0] != "no_reverse") {
      if (made.falls_through.on) return Bad(plugin, fmt::format("unknown property '{}'", line[0]));
      add(line);
    }
  }
  return absl::OkStatus();
}

// coredns: plugin/kubernetes
void Corefile::Compiled::AddKubernetes(const Plugin& plugin, const std::vector<std::string>& server_zones,
                                       Notes& note) {
  Kubernetes& made = kubernetes.emplace_back();
  made.zones = ZonesOf(plugin.words, server_zones);
  for (const Words& line : plugin.block) {
    if (line[0] == "fallthrough") made.falls_through = {true, ZonesOf(Rest(line), {})};
    if (line[0] == "namespaces") made.namespaces = Rest(line);
    for (const char* other : {"endpoint", "kubeconfig", "labels", "namespace_labels"}) {
      if (line[0] == other) Note(fmt::format("plugin kubernetes, {}", other), note);
    }
  }
}

// coredns: plugin/forward
absl::Status Corefile::Compiled::AddForward(const Plugin& plugin) {
  if (plugin.words.size() < 2) return Bad(plugin, "wrong argument count: FROM TO...");
  Forward& made = forwards.emplace_back();
  made.from = Lower(ZoneOf(plugin.words[0]));
  made.to = Rest(plugin.words);
  for (const Words& line : plugin.block) {
    if (line[0] == "except") made.except = ZonesOf(Rest(line), {});
  }
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

// What a pattern finds in "name.", the whole first and then its groups; none: nothing.
std::vector<std::string> GroupsOf(const re2::RE2& regex, const std::string& name) {
  const int count = regex.NumberOfCapturingGroups() + 1;
  std::vector<re2::StringPiece> found(static_cast<size_t>(count));
  const std::string subject = name + ".";
  std::vector<std::string> out;
  if (!regex.Match(subject, 0, subject.size(), re2::RE2::UNANCHORED, found.data(), count)) return out;
  for (const re2::StringPiece& piece : found) out.emplace_back(piece.data(), piece.size());
  return out;
}

// Go's template as far as names take it: {{ .Name }}, {{ .Zone }}, {{ .Group.NAME }}, {{ index .Match N }}.
std::string Expand(const std::string& text, const std::string& name, const std::string& zone, const re2::RE2* regex) {
  const std::vector<std::string> groups = regex == nullptr ? std::vector<std::string>() : GroupsOf(*regex, name);
  const auto value = [&](const std::string& inner) -> std::string {
    if (inner == ".Name" || inner == ".Question.Name") return name + ".";
    if (inner == ".Zone") return zone + ".";
    if (inner.starts_with(".Group.") && regex != nullptr) {
      const auto it = regex->NamedCapturingGroups().find(inner.substr(7));
      const bool found = it != regex->NamedCapturingGroups().end() && static_cast<size_t>(it->second) < groups.size();
      return found ? groups[static_cast<size_t>(it->second)] : "";
    }
    const Words words = WordsOf(inner);
    size_t index = 0;
    const bool found = words.size() == 3 && words[0] == "index" && words[1] == ".Match" &&
                       absl::SimpleAtoi(words[2], &index) && index < groups.size();
    return found ? groups[index] : "";
  };
  static const re2::RE2* const action = new re2::RE2(R"(\{\{-?\s*(.*?)\s*-?\}\})");
  std::string out;
  re2::StringPiece rest(text), found[2];
  while (action->Match(rest, 0, rest.size(), re2::RE2::UNANCHORED, found, 2)) {
    const auto before = static_cast<size_t>(found[0].data() - rest.data());
    out.append(rest.data(), before);
    out += value({found[1].data(), found[1].size()});
    rest.remove_prefix(before + found[0].size());
  }
  return out.append(rest.data(), rest.size());
}

bool AnyHolds(const std::vector<std::string>& zones, std::string_view name) {
  return std::any_of(zones.begin(), zones.end(), [&](const std::string& zone) { return IsWithin(name, zone); });
}

}  // namespace

std::string Corefile::Compiled::Rewritten(std::string name) const {
  using Kind = Rewrite::Kind;
  for (const Rewrite& rule : rewrites) {
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
        // {1} stands for the first group; the pattern has to fit somewhere.
        const std::vector<std::string> groups = GroupsOf(*rule.regex, name);
        if (!groups.empty()) to = rule.to;
        for (size_t i = 0; i < groups.size(); ++i)
          to = absl::StrReplaceAll(to, {{fmt::format("{{{}}}", i), groups[i]}});
        break;
      }
    }
    if (to == name) continue;
    name = Undotted(to);
    if (!rule.goes_on) break;
  }
  return name;
}

bool Corefile::Compiled::AnswersByTemplate(const std::string& name, Step* out) const {
  for (const Template& each : templates) {
    const auto zone =
        std::find_if(each.zones.begin(), each.zones.end(), [&](const std::string& one) { return IsWithin(name, one); });
    if (zone == each.zones.end()) continue;
    const auto match = std::find_if(each.matches.begin(), each.matches.end(),
                                    [&](const auto& regex) { return re2::RE2::PartialMatch(name + ".", *regex); });
    if (match == each.matches.end() && !each.matches.empty()) {
      if (each.falls_through.Holds(name)) continue;
      out->kind = Step::Kind::kNoServer;  // SERVFAIL: no template fits, and the next plugin is not asked
      return true;
    }
    if (each.refused) return true;
    const re2::RE2* const regex = match == each.matches.end() ? nullptr : match->get();
    bool answered = false;
    for (const std::string& answer : each.answers)
      answered = TakeAnswer(Expand(answer, name, *zone, regex), out) || answered;
    if (!answered) out->kind = Step::Kind::kNoSuchName;
    return true;
  }
  return false;
}

bool Corefile::Compiled::AnswersByHosts(const std::string& name, Step* out) const {
  for (const Hosts& each : hosts) {
    if (!AnyHolds(each.zones, name)) continue;
    for (const auto& [host, ip] : each.entries) {
      if (host == name) out->addresses.push_back(ip);
    }
    if (out->addresses.empty() && each.falls_through.Holds(name)) continue;
    out->kind = out->addresses.empty() ? Step::Kind::kNoSuchName : Step::Kind::kAddresses;
    if (!out->addresses.empty()) out->ttl = each.ttl;
    return true;
  }
  return false;
}

bool Corefile::Compiled::AnswersByServices(const std::string& name, Step* out) const {
  for (const Kubernetes& each : kubernetes) {
    const std::string* zone = nullptr;
    for (const std::string& one : each.zones) {
      if (IsWithin(name, one) && (zone == nullptr || one.size() > zone->size())) zone = &one;
    }
    if (zone == nullptr) continue;
    out->kind = Step::Kind::kService;
    out->zone = *zone;
    out->falls_through = each.falls_through.Holds(name);
    out->namespaces = each.namespaces;
    return true;
  }
  return false;
}

bool Corefile::Compiled::Forwards(const std::string& name, Step* out) const {
  for (const Forward& each : forwards) {
    if (!IsWithin(name, each.from) || AnyHolds(each.except, name)) continue;
    out->kind = Step::Kind::kForward;
    for (const std::string& to : each.to) {
      const size_t scheme = to.find("://");
      if (to.find('/') != to.npos && scheme == to.npos) continue;  // a resolv.conf: the node's servers
      std::string address = scheme == to.npos ? to : to.substr(scheme + 3);
      if (std::count(address.begin(), address.end(), ':') == 1) address = address.substr(0, address.find(':'));
      out->servers.push_back(std::move(address));
    }
    if (out->servers.size() < each.to.size()) out->servers.clear();
    return true;
  }
  return false;
}

Corefile::Step Corefile::Ask(std::string name, bool after_services) const {
  Step out;
  out.name = name = Lower(name);
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
  if (server == nullptr) return out;
  if (!after_services) {
    out.name = name = server->Rewritten(std::move(name));
    if (server->AnswersByTemplate(name, &out) || server->AnswersByHosts(name, &out) ||
        server->AnswersByServices(name, &out))
      return out;
  }
  server->Forwards(name, &out);
  return out;
}

}  // namespace wavetank::sim
