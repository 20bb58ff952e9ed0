// The house's own laws (ARCHITECTURE.md), read off its sources: who may include whom, what must not be called where
// determinism holds, and what no file may name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace wavetank {
namespace {

namespace fs = std::filesystem;

struct SourceFile {
  std::string path;  // from the repository's root
  std::vector<std::string> lines;
};

std::vector<std::string> ReadLines(const fs::path& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
  return lines;
}

// Sorted by path. Build folders and what git ignores lie outside of `folders`.
std::vector<SourceFile> Sources(const std::vector<std::string>& folders, const std::set<std::string>& extensions) {
  std::vector<SourceFile> files;
  const fs::path root = WAVETANK_SOURCE_DIR;
  for (const std::string& folder : folders) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file() || !extensions.contains(entry.path().extension().string())) continue;
      files.push_back({fs::relative(entry.path(), root).string(), ReadLines(entry.path())});
    }
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

const std::vector<SourceFile>& Cpp() {
  static const std::vector<SourceFile> files =
      Sources({"core", "fakes", "sim", "replay", "oracles", "scenarios", "check", "record", "import", "reports",
               "serve", "capacity", "library", "cli"},
              {".h", ".cc"});
  return files;
}

// All texts that people read, at the top of the house as well.
const std::vector<SourceFile>& EveryText() {
  static const std::vector<SourceFile> all = [] {
    std::vector<SourceFile> files =
        Sources({"core",   "fakes",   "sim",   "replay", "oracles",  "scenarios", "record",
                 "import", "reports", "serve", "check",  "capacity", "library",   "cli",
                 "tests",  "bench",   "docs",  "tools",  "cmake",    "examples",  ".ci"},
                {".h", ".cc", ".md", ".txt", ".py", ".yaml", ".json", ".cmake", ".sh", ".js", ".css", ""});
    for (const char* top :
         {"CMakeLists.txt", "run", "test", "packages.txt", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"}) {
      files.push_back({top, ReadLines(fs::path(WAVETANK_SOURCE_DIR) / top)});
    }
    return files;
  }();
  return all;
}

std::string At(const SourceFile& file, size_t line) { return file.path + ":" + std::to_string(line + 1); }

// The text between quotes of an include line; "" for any other line.
std::string Included(const std::string& line) {
  static constexpr std::string_view kStart = "#include \"";
  if (line.rfind(kStart, 0) != 0) return "";
  const size_t end = line.find('"', kStart.size());
  return end == std::string::npos ? "" : line.substr(kStart.size(), end - kStart.size());
}

bool Under(const std::string& path, const std::string& folder) { return path.rfind(folder + "/", 0) == 0; }

// The line without its comment and without what stands in string literals.
std::string Code(const std::string& line) {
  std::string code;
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (!quoted && line.compare(i, 2, "//") == 0) break;
    if (line[i] == '\\' && quoted) {
      ++i;
      continue;
    }
    if (line[i] == '"') quoted = !quoted;
    if (!quoted || line[i] == '"') code += line[i];
  }
  return code;
}

bool WordChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// `pattern` where no identifier goes on to its left.
bool Names(const std::string& code, const std::string& pattern) {
  for (size_t at = code.find(pattern); at != std::string::npos; at = code.find(pattern, at + 1)) {
    if (at == 0 || !WordChar(code[at - 1]) || !WordChar(pattern.front())) return true;
  }
  return false;
}

// What a folder may include beside itself and the rooms within it, of the house's own folders. The longest name that
// fits a file is its rule; a folder without one may hold no source. A name in a list stands for the rooms below it,
// too.
const std::map<std::string, std::vector<std::string>>& MayInclude() {
  // What everything in core/ may know that knows a mesh's state: its objects, its configuration, its services.
  static const std::vector<std::string> kModel = {"core/base",     "core/kube",   "core/x509", "core/profile",
                                                  "core/envoyapi", "core/config", "core/model"};
  const auto model_and = [](std::vector<std::string> more) {
    more.insert(more.end(), kModel.begin(), kModel.end());
    return more;
  };
  const auto generator = [&](std::vector<std::string> more) {
    for (const char* below : {"core/push", "core/security", "core/xds", "core/gen/wire", "core/gen/view"})
      more.push_back(below);
    return model_and(std::move(more));
  };
  // A simulated Envoy knows nothing of core/ but its base, certificates and the descriptors of Envoy's API.
  const auto envoy = [](const std::vector<std::string>& rooms) {
    std::vector<std::string> out = {"core/base", "core/x509"};
    for (const std::string& room : rooms) out.push_back("fakes/envoy/" + room);
    return out;
  };
  static const std::map<std::string, std::vector<std::string>> rules = {
      {"core/base", {}},
      {"core/base/buggify", {"core/base"}},
      {"core/base/cel", {"core/base"}},
      {"core/base/containers", {"core/base"}},
      {"core/base/text", {}},
      {"core/base/json", {"core/base"}},
      {"core/kube", {"core/base"}},
      {"core/x509", {"core/base"}},
      {"core/profile", {"core/base"}},
      {"core/config/schema", {"core/base", "core/kube"}},
      {"core/config/kinds", {"core/base", "core/kube", "core/config/schema"}},
      {"core/config/mesh", {"core/base", "core/kube", "core/config/schema", "core/config/kinds"}},
      {"core/config/store", {"core/base", "core/kube", "core/config/schema", "core/config/kinds"}},
      {"core/envoyapi", {"core/base", "core/kube", "core/config/schema"}},
      {"core/model", {"core/base", "core/kube", "core/config"}},
      {"core/registry", {"core/base", "core/kube", "core/profile", "core/config", "core/model"}},
      {"core/registry/kube", {"core/base", "core/kube", "core/profile", "core/config", "core/model", "core/registry"}},
      {"core/registry/service_entry",
       {"core/base", "core/kube", "core/profile", "core/config", "core/model", "core/registry"}},
      {"core/registry/multicluster", model_and({"core/registry"})},
      {"core/push", model_and({})},
      {"core/push/policies", model_and({})},
      {"core/security", model_and({})},
      {"core/security/callers", model_and({"core/security"})},
      {"core/security/signing", model_and({"core/security"})},
      {"core/xds", model_and({"core/push", "core/security"})},
      {"core/gen/wire", {"core/base"}},
      {"core/gen/view", model_and({"core/push", "core/gen/wire"})},
      {"core/gen/authz", generator({})},
      {"core/gen/extensions", generator({})},
      {"core/gen/eds", generator({})},
      {"core/gen/nds", generator({})},
      {"core/gen/sds", generator({})},
      {"core/gen/telemetry", generator({"core/gen/authz"})},
      {"core/gen/cds", generator({"core/gen/eds", "core/gen/extensions"})},
      {"core/gen/rds", generator({"core/gen/authz", "core/gen/extensions"})},
      {"core/gen/lds", generator({"core/gen/authz", "core/gen/extensions", "core/gen/telemetry", "core/gen/rds"})},
      {"core/gen/grpc", generator({"core/gen/authz", "core/gen/cds", "core/gen/rds"})},
      {"core/inject", model_and({})},
      {"core/inject/template", {"core/base", "core/x509"}},
      {"core/gateway_api", model_and({"core/security"})},
      {"core/gateway_api/routes", model_and({"core/gateway_api"})},
      {"core/gateway_api/policies", model_and({"core/gateway_api"})},
      {"core/gateway_api/control", model_and({"core/gateway_api", "core/inject"})},
      {"core/agent", model_and({"core/security", "core/inject", "core/gen/nds"})},
      {"core/election", {"core/base", "core/kube", "core/x509"}},
      {"core/istiod", {"core"}},
      {"core/debug", {"core"}},
      {"core/settings", {"core"}},
      {"core/validation", {"core/base", "core/profile", "core/config/schema", "core/config/kinds", "core/envoyapi"}},
      {"core/kube/credentials", {"core/base", "core/kube", "core/x509"}},
      // A cluster's rooms, from the bottom up; fakes/kube itself puts them together.
      {"fakes/kube/objects", {"core/base", "core/kube"}},
      {"fakes/kube/merge", {"core/base", "core/kube", "fakes/kube/objects"}},
      {"fakes/kube/validation", {"core/base", "core/kube", "fakes/kube/objects"}},
      {"fakes/kube/printing", {"core/base", "core/kube", "fakes/kube/objects"}},
      {"fakes/kube/store",
       {"core/base", "core/kube", "fakes/kube/merge", "fakes/kube/objects", "fakes/kube/validation"}},
      {"fakes/kube/client", {"core/base", "core/kube", "fakes/kube/objects", "fakes/kube/store"}},
      {"fakes/kube/control",
       {"core/base", "core/kube", "fakes/kube/objects", "fakes/kube/store", "fakes/kube/validation"}},
      {"fakes/kube/nodes", {"core/base", "core/kube", "fakes/kube/control", "fakes/kube/objects", "fakes/kube/store"}},
      {"fakes/kube/services",
       {"core/base", "core/kube", "fakes/kube/control", "fakes/kube/objects", "fakes/kube/store"}},
      {"fakes/kube/workloads",
       {"core/base", "core/kube", "fakes/kube/control", "fakes/kube/objects", "fakes/kube/store"}},
      {"fakes/kube/housekeeping",
       {"core/base", "core/kube", "core/x509", "fakes/kube/control", "fakes/kube/objects", "fakes/kube/store"}},
      {"fakes/kube",
       {"core/base", "core/kube", "fakes/kube/control", "fakes/kube/housekeeping", "fakes/kube/nodes",
        "fakes/kube/services", "fakes/kube/store", "fakes/kube/workloads"}},
      {"fakes/kube/http/api", {"core/base", "core/kube", "fakes/kube/objects"}},
      {"fakes/kube/http/message",
       {"core/base", "core/kube", "fakes/kube/http/api", "fakes/kube/objects", "fakes/kube/printing",
        "fakes/kube/store"}},
      {"fakes/kube/http/rest",
       {"core/base", "core/kube", "core/x509", "fakes/kube/control", "fakes/kube/http/api", "fakes/kube/http/message",
        "fakes/kube/merge", "fakes/kube/objects", "fakes/kube/store", "fakes/kube/validation"}},
      {"fakes/kube/http/transport",
       {"core/base", "core/kube", "fakes/kube/http/message", "fakes/kube/objects", "fakes/kube/store"}},
      {"fakes/envoy/tcp", {"core/base"}},
      {"fakes/envoy/match", {"core/base", "fakes/envoy/tcp"}},
      {"fakes/envoy/extensions", {"core/base", "core/envoyapi", "fakes/envoy/match"}},
      {"fakes/envoy/apps", envoy({"tcp", "tls"})},
      {"fakes/envoy/lb", envoy({"tcp", "match"})},
      {"fakes/envoy/tls", envoy({"tcp", "match", "extensions"})},
      {"fakes/envoy/access_log", envoy({"tcp", "match", "extensions"})},
      {"fakes/envoy/process", envoy({"tcp", "match", "extensions", "tls"})},
      {"fakes/envoy/http", envoy({"tcp", "match", "extensions", "access_log"})},
      {"fakes/envoy/config", envoy({"tcp", "match", "extensions", "tls", "lb", "access_log", "http"})},
      {"fakes/envoy/filters", envoy({"tcp", "match", "extensions", "http", "config"})},
      {"fakes/envoy/upstream", envoy({"tcp", "match", "tls", "lb", "extensions", "config", "process"})},
      {"fakes/envoy/proxy", envoy({"tcp", "match", "extensions", "tls", "lb", "access_log", "http", "config", "filters",
                                   "process", "upstream"})},
      {"fakes/envoy/xds", envoy({"match", "tls", "config", "process", "proxy"})},
      {"fakes/envoy", envoy({"process", "proxy", "upstream", "xds"})},
      {"sim/kernel", {"core/base"}},
      {"sim/network", {"core/base", "core/kube", "core/inject", "core/x509", "fakes"}},
      {"sim/inputs", {"core/base"}},
      {"sim/inputs/kinds", {"core", "fakes", "sim"}},
      {"sim/mending", {"core", "fakes/kube/store"}},
      {"sim/remote", {"core", "fakes"}},
      {"sim/signing", {"core", "fakes", "sim/network", "sim/remote"}},
      {"sim/webhooks", {"core", "fakes"}},
      {"sim/upgrade", {"core", "fakes/kube"}},
      {"sim/invariants", {"core", "fakes", "sim"}},
      {"sim/agent", {"core", "fakes/envoy/process", "fakes/kube/store", "sim/apps"}},
      {"sim/apps", {"core/base", "core/kube", "core/x509", "fakes/envoy/apps", "fakes/envoy/tcp", "fakes/envoy/tls"}},
      {"sim", {"core", "fakes"}},
      {"replay", {"core", "fakes", "sim"}},
      {"oracles/golden", {"core", "fakes/kube", "sim/kernel"}},
      {"oracles/envoy", {"core/base", "core/envoyapi", "core/x509", "fakes/envoy", "sim/kernel"}},
      {"oracles/envoy/peers", {"core/base"}},
      {"oracles/control_plane", {"core", "fakes", "sim", "replay", "scenarios", "serve", "oracles/golden"}},
      {"scenarios/language", {"core/base", "core/kube", "sim"}},
      {"scenarios/answers", {"core", "fakes", "sim"}},
      {"scenarios/results", {"core", "fakes", "sim", "scenarios/language", "scenarios/answers"}},
      {"scenarios/mesh", {"core", "fakes/kube", "sim", "scenarios/language"}},
      {"scenarios/actions",
       {"core/base", "core/kube", "core/profile", "fakes/kube", "sim", "scenarios/language", "scenarios/mesh"}},
      {"scenarios/expectations", {"core/base", "sim/invariants", "scenarios/language", "scenarios/results"}},
      {"scenarios/reader",
       {"core/base", "core/config/mesh", "core/profile", "fakes/kube/store", "sim", "scenarios/answers",
        "scenarios/language", "scenarios/mesh", "scenarios/actions", "scenarios/expectations"}},
      {"scenarios/runner",
       {"core", "fakes", "sim", "replay", "scenarios/answers", "scenarios/language", "scenarios/results",
        "scenarios/mesh", "scenarios/actions", "scenarios/expectations", "scenarios/reader"}},
      {"scenarios/survey",
       {"core", "fakes", "sim", "scenarios/answers", "scenarios/language", "scenarios/results", "scenarios/mesh",
        "scenarios/actions", "scenarios/reader", "scenarios/runner"}},
      {"scenarios/library",
       {"core/base", "core/profile", "sim", "scenarios/answers", "scenarios/language", "scenarios/results",
        "scenarios/reader", "scenarios/runner"}},
      {"check/mesh", {"core", "fakes", "sim", "replay", "scenarios"}},
      {"check/rules", {"core", "fakes", "sim", "scenarios", "check/mesh"}},
      {"check/lint", {"core", "scenarios", "sim", "check/mesh", "check/rules", "check/traffic", "check/game_day"}},
      {"check/traffic", {"core", "fakes", "sim", "scenarios", "check/mesh"}},
      {"check/game_day", {"core", "fakes", "sim", "scenarios", "check/mesh", "check/rules", "check/traffic"}},
      {"check/diff", {"core", "fakes", "sim", "scenarios", "check/mesh", "check/rules", "check/traffic"}},
      {"check/upgrade",
       {"core", "fakes", "sim", "replay", "scenarios", "check/mesh", "check/rules", "check/traffic", "check/game_day"}},
      {"capacity/model", {"core/base"}},
      {"capacity/queue", {"core/base", "capacity/model"}},
      {"capacity/calibrate", {"core/base", "capacity/model"}},
      {"capacity/metrics", {"core", "fakes", "sim", "replay", "scenarios", "capacity/model"}},
      {"capacity/fleet", {"core/base", "core/kube", "scenarios/language", "capacity/model", "capacity/queue"}},
      {"capacity/recorded", {"core", "fakes", "sim", "replay", "capacity/model", "capacity/queue", "capacity/fleet"}},
      {"capacity/plan", {"core/base", "scenarios/language", "capacity/model", "capacity/queue", "capacity/fleet"}},
      {"capacity/sweep",
       {"core/base", "core/kube", "sim", "scenarios", "reports", "capacity/model", "capacity/queue", "capacity/fleet",
        "capacity/plan", "capacity/metrics", "capacity/calibrate"}},
      {"capacity/page",
       {"core/base", "reports", "capacity/model", "capacity/fleet", "capacity/plan", "capacity/sweep"}},
      {"check/cause", {"core", "fakes", "sim", "replay", "scenarios", "check/game_day", "check/mesh", "check/lint"}},
      {"reports", {"core", "fakes", "sim", "replay", "scenarios"}},
      {"serve/streams", {}},
      {"serve/agent", {"core", "fakes/kube/http", "serve/streams"}},
      {"serve/loop", {"core", "sim"}},
      {"serve/kube", {"core/base", "core/kube", "core/x509", "core/security", "fakes/kube", "sim", "serve/loop"}},
      {"serve/debug", {"core", "fakes/kube", "sim", "serve/loop"}},
      {"serve/admin", {"core", "fakes", "sim", "scenarios", "serve/grpc"}},
      {"serve/pods",
       {"core", "fakes", "sim", "replay", "scenarios", "serve/loop", "serve/grpc", "serve/admin", "serve/agent",
        "serve/debug"}},
      {"serve/grpc", {"core", "fakes/envoy/access_log", "sim", "replay", "scenarios", "serve/loop", "serve/streams"}},
      {"serve", {"core", "fakes", "sim", "replay", "scenarios"}},
      {"record", {"core", "sim", "replay"}},
      {"import/evidence", {"core/base", "core/kube"}},
      {"import/text", {"core/base", "import/evidence"}},
      {"import/sources", {"core/base", "import/evidence"}},
      {"import/istiod", {"core/base", "import/evidence"}},
      {"import/report", {"core", "replay", "import/evidence"}},
      {"import/kube",
       {"core/base", "core/kube", "core/validation", "fakes/kube/validation", "record", "import/evidence"}},
      {"import/access", {"core/base", "core/kube", "import/evidence"}},
      {"import/envoy", {"core/base", "import/access", "import/evidence"}},
      {"import/metrics", {"core/base", "import/evidence"}},
      {"import/skeleton",
       {"core", "fakes/kube/objects", "sim", "replay", "record", "import/evidence", "import/kube", "import/report"}},
      {"import/judge", {"core/base", "replay", "import/envoy", "import/evidence", "import/metrics"}},
      {"import", {"core", "fakes/kube", "sim", "replay", "record"}},
      {"library/include", {}},  // its headers name one another as those who install them do
      {"library/model", {}},
      {"library/client", {}},
      {"library/rows", {"scenarios/actions", "scenarios/language"}},
      {"library/session", {"core", "fakes", "sim", "replay", "scenarios", "reports"}},
      {"library/swarm", {"core", "fakes", "sim", "replay", "scenarios", "check/game_day", "library/session"}},
      {"cli/tables", {"core"}},
      {"cli",
       {"core", "fakes", "sim", "replay", "oracles", "scenarios", "record", "import", "reports", "serve", "check",
        "capacity", "library"}},
  };
  return rules;
}

TEST(Architecture, IncludesPointOneWay) {
  const std::vector<std::string> house = {"core",   "fakes",  "sim",     "replay",  "oracles", "scenarios",
                                          "record", "import", "reports", "serve",   "library", "cli",
                                          "tests",  "bench",  "check",   "capacity"};
  for (const SourceFile& file : Cpp()) {
    std::string own;  // the longest rule that fits
    for (const auto& [folder, allowed] : MayInclude()) {
      if (Under(file.path, folder) && folder.size() > own.size()) own = folder;
    }
    ASSERT_FALSE(own.empty()) << file.path << ": no rule says what this folder may include";
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string header = Included(file.lines[i]);
      if (std::none_of(house.begin(), house.end(), [&](const auto& folder) { return Under(header, folder); })) continue;
      const std::vector<std::string>& allowed = MayInclude().at(own);
      EXPECT_TRUE(Under(header, own) || std::any_of(allowed.begin(), allowed.end(),
                                                    [&](const auto& folder) { return Under(header, folder); }))
          << At(file, i) << ": " << own << "/ must not include " << header;
    }
  }
}

// What includes what, folder by folder. A room and the rooms below it are folders of their own.
std::map<std::string, std::set<std::string>> IncludedFolders() {
  std::map<std::string, std::set<std::string>> out;
  const auto folder_of = [](const std::string& path) { return path.substr(0, path.rfind('/')); };
  for (const SourceFile& file : Cpp()) {
    std::set<std::string>& included = out[folder_of(file.path)];
    for (const std::string& line : file.lines) {
      const std::string header = Included(line);
      if (header.find('/') == std::string::npos || !fs::exists(fs::path(WAVETANK_SOURCE_DIR) / header)) continue;
      if (folder_of(header) != folder_of(file.path)) included.insert(folder_of(header));
    }
  }
  return out;
}

// The folders of a circle that `folder` closes, in order; empty if there is none.
std::vector<std::string> CircleFrom(const std::string& folder,
                                    const std::map<std::string, std::set<std::string>>& included,
                                    std::vector<std::string>& way, std::set<std::string>& done) {
  if (const auto at = std::find(way.begin(), way.end(), folder); at != way.end()) return {at, way.end()};
  const auto it = included.find(folder);
  if (it == included.end() || !done.insert(folder).second) return {};
  way.push_back(folder);
  for (const std::string& next : it->second) {
    if (std::vector<std::string> circle = CircleFrom(next, included, way, done); !circle.empty()) return circle;
  }
  way.pop_back();
  return {};
}

TEST(Architecture, NoCircleOfFolders) {
  const std::map<std::string, std::set<std::string>> included = IncludedFolders();
  EXPECT_GT(included.size(), 40u);
  std::set<std::string> done;
  for (const auto& [folder, headers] : included) {
    std::vector<std::string> way;
    std::string circle;
    for (const std::string& each : CircleFrom(folder, included, way, done)) circle += each + " -> ";
    EXPECT_EQ(circle, "");
  }
}

TEST(Architecture, ACircleIsSeen) {
  std::set<std::string> done;
  std::vector<std::string> way;
  EXPECT_EQ(CircleFrom("a", {{"a", {"b"}}, {"b", {"c"}}, {"c", {"b"}}}, way, done),
            (std::vector<std::string>{"b", "c"}));
}

// A folder with more sources than this is a room nobody finds anything in.
TEST(Architecture, NoFolderHoldsMoreThanTwentySevenSources) {
  constexpr int kMost = 27;
  std::map<std::string, int> sources;
  for (const SourceFile& file : Cpp()) ++sources[file.path.substr(0, file.path.rfind('/'))];
  for (const auto& [folder, count] : sources) EXPECT_LE(count, kMost) << folder;
}

// Two types of one name in one namespace are one type to the linker, which keeps one of their destructors: what it is
// then called for is chance.
TEST(Architecture, ATypeIsDefinedOnceInItsNamespace) {
  std::map<std::string, std::set<std::string>> defined;
  const auto name_after = [](const std::string& line, std::string_view word) {
    if (line.rfind(word, 0) != 0 || line.back() != '{') return std::string();
    size_t end = word.size();
    while (end < line.size() && WordChar(line[end])) ++end;
    if (line.compare(end, 2, "::") == 0) return std::string();  // a member's definition: its type is told elsewhere
    return line.substr(word.size(), end - word.size());
  };
  for (const SourceFile& file : Cpp()) {
    std::string space;
    bool anonymous = false;
    for (const std::string& line : file.lines) {
      if (line.empty()) continue;
      if (line == "namespace {") anonymous = true;
      if (line == "}  // namespace") anonymous = false;
      if (line.rfind("namespace wavetank", 0) == 0) space = line;
      for (const std::string_view word : {"struct ", "class "}) {
        const std::string name = name_after(line, word);
        if (!name.empty() && !anonymous) defined[space + " " + name].insert(file.path);
      }
    }
  }
  EXPECT_GT(defined.size(), 300u);
  for (const auto& [type, files] : defined) {
    EXPECT_EQ(files.size(), 1u) << type << " is defined in " << *files.begin() << " and " << *files.rbegin();
  }
}

// A clone holds what its own words point to.
TEST(Architecture, NoLineCitesAnAbsentDocument) {
  const std::string beside = std::string("../sha") + "red";
  for (const SourceFile& file : EveryText()) {
    if (file.path == "tests/architecture_test.cc") continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      EXPECT_EQ(line.find(beside), std::string::npos) << At(file, i) << ": a clone has no such folder";
      for (size_t at = line.find(".md"); at != std::string::npos; at = line.find(".md", at + 1)) {
        if (at + 3 < line.size() && WordChar(line[at + 3])) continue;
        size_t from = at;
        while (from > 0 && (WordChar(line[from - 1]) || std::string("./-@").find(line[from - 1]) != std::string::npos))
          --from;
        const fs::path cited = line.substr(from, at + 3 - from);
        if (cited.stem() == "" || line.find("://") < at) continue;
        const fs::path root = WAVETANK_SOURCE_DIR, own = root / fs::path(file.path).parent_path();
        EXPECT_TRUE(fs::exists(root / cited) || fs::exists(own / cited) || fs::exists(root / "docs" / cited))
            << At(file, i) << ": " << cited;
      }
    }
  }
}

// A comment that names a source of the house names one that is there: from the root, from its own folder, or from a
// room above it.
TEST(Architecture, NoLineCitesAnAbsentSource) {
  const std::vector<std::string> house = {"core/",    "fakes/",  "sim/",   "replay/", "oracles/", "scenarios/",
                                          "record/",  "import/", "serve/", "check/",  "reports/", "capacity/",
                                          "library/", "cli/",    "tests/", "bench/"};
  const fs::path root = WAVETANK_SOURCE_DIR;
  int cited = 0;
  for (const SourceFile& file : EveryText()) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      const auto part = [&](size_t at) { return WordChar(line[at]) || std::string("./-").find(line[at]) < 3; };
      for (size_t from = 0; from < line.size(); ++from) {
        if (!part(from) || (from > 0 && (part(from - 1) || std::string("{}*$<>").find(line[from - 1]) < 6))) continue;
        size_t end = from;
        while (end < line.size() && part(end)) ++end;
        while (end > from && line[end - 1] == '.') --end;
        const std::string path = line.substr(from, end - from);
        const std::string extension = fs::path(path).extension();
        if ((extension != ".h" && extension != ".cc") || path.find("NAME") != std::string::npos) continue;
        if (std::none_of(house.begin(), house.end(), [&](const auto& top) { return path.rfind(top, 0) == 0; }))
          continue;
        ++cited;
        bool found = fs::exists(root / path);
        for (fs::path above = root / file.path; !found && above != root;) {
          above = above.parent_path();
          found = fs::exists(above / path);
        }
        EXPECT_TRUE(found) << At(file, i) << ": " << path;
      }
    }
  }
  EXPECT_GT(cited, 1000);
}

// A test that leaves itself out says of what kind its reason is, for the census (tests/left_out.h).
TEST(Architecture, NoTestSkipsWithoutAReasonForTheCensus) {
  for (const SourceFile& file : Sources({"tests"}, {".h", ".cc"})) {
    if (file.path == "tests/left_out.h") continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      EXPECT_FALSE(Names(Code(file.lines[i]), std::string("GTEST_") + "SKIP")) << At(file, i);
    }
  }
}

TEST(Architecture, OnlyOneFileOfTheTestsSleeps) {
  std::vector<std::string> sleeping;
  for (const SourceFile& file : Sources({"tests"}, {".h", ".cc"})) {
    if (file.path == "tests/await.h" || file.path == "tests/architecture_test.cc") continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      for (const char* call : {"sleep_for(", "sleep_until(", "usleep(", "nanosleep("}) {
        if (file.lines[i].find(call) != std::string::npos) sleeping.push_back(At(file, i));
      }
    }
  }
  EXPECT_THAT(sleeping, testing::IsEmpty()) << "Await of tests/await.h waits for what is meant";
}

TEST(Architecture, EveryIncludedHeaderOfTheHouseExists) {
  for (const SourceFile& file : Cpp()) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string header = Included(file.lines[i]);
      if (header.find('/') == std::string::npos ||
          !fs::is_directory(fs::path(WAVETANK_SOURCE_DIR) / header.substr(0, header.find('/')))) {
        continue;
      }
      EXPECT_TRUE(fs::exists(fs::path(WAVETANK_SOURCE_DIR) / header)) << At(file, i) << ": " << header;
    }
  }
}

// fakes/kube is a Kubernetes, and would be one without Istio in the world.
TEST(Architecture, TheFakeClusterKnowsNoIstio) {
  for (const SourceFile& file : Cpp()) {
    if (!Under(file.path, "fakes/kube")) continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      std::string lower = file.lines[i].substr(0, file.lines[i].find("//"));
      std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
      EXPECT_EQ(lower.find("istio"), std::string::npos) << At(file, i) << ": " << file.lines[i];
    }
  }
}

// Nothing that differs between two machines or two runs may be asked where the trace is made.
TEST(Architecture, NoClockNoChanceNoSurroundingsWhereTheTraceIsMade) {
  const std::vector<std::string> banned = {
      "system_clock",  "steady_clock",  "high_resolution_clock",
      "gettimeofday",  "clock_gettime", "std::time(",
      "::time(",       "localtime",     "strftime",
      "mktime",        "std::rand",     "srand(",
      "drand48",       "random_device", "mt19937",
      "std::shuffle",  "std::locale",   "setlocale",
      "std::stod",     "strtod",        "getenv",
      "std::thread",   "std::async",    "this_thread",
      "std::mutex",    "getpid",        "gethostname",
      "std::ifstream", "std::ofstream", "fopen(",
      "std::hash<",    "absl::Hash",    "std::cout",
      "std::cerr",     "printf(",       "RAND_bytes",
      "absl::Now",     "absl::BitGen",  "absl::Uniform",
      "RandomUUID",
  };
  // Where a file must be read, or a word looks like one of these.
  const std::map<std::string, std::set<std::string>> allowed = {
      {"fakes/kube/objects/manifest.cc", {"std::ifstream"}},
      {"fakes/kube/objects/manifest_folders.cc", {"std::ifstream"}},
      // They carry bytes; the store is another thread's.
      {"fakes/kube/http/transport/server.cc", {"std::thread", "std::mutex"}},
      {"fakes/kube/http/transport/server_impl.h", {"std::thread", "std::mutex"}},
      {"fakes/kube/http/transport/http1.cc", {"std::mutex", "steady_clock"}},
      {"core/base/buggify/buggify.cc", {"std::mutex"}},    // of the table of runs: worlds live in threads of their own
      {"core/base/json/json_map.cc", {"std::mutex"}},      // of the names' table, whose order shows nowhere
      {"core/gen/rds/gateway_routes.cc", {"std::hash<"}},  // of a table that is never iterated
      {"core/base/containers/named_refs.h", {"absl::Hash"}},   // of tables that are listed sorted
      {"core/registry/kube/pod_addresses.h", {"absl::Hash"}},  // of tables that are never iterated
      {"fakes/envoy/match/string_map.h", {"std::hash<"}},      // of a table that is never iterated
  };
  for (const SourceFile& file : Cpp()) {
    if (!Under(file.path, "core") && !Under(file.path, "fakes") && !Under(file.path, "sim")) continue;
    const auto exceptions = allowed.find(file.path);
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string code = Code(file.lines[i]);
      for (const std::string& word : banned) {
        if (exceptions != allowed.end() && exceptions->second.contains(word)) continue;
        EXPECT_FALSE(Names(code, word)) << At(file, i) << ": " << word << " in: " << file.lines[i];
      }
    }
  }
}

TEST(Architecture, NoFloatingPointTimeInTheKernel) {
  for (const SourceFile& file : Cpp()) {
    if (!Under(file.path, "sim") && !Under(file.path, "core/base")) continue;
    if (Under(file.path, "core/base/cel")) continue;  // a language that has such numbers
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string code = Code(file.lines[i]);
      if (code.find("ToMillis") != std::string::npos) continue;  // for people to read
      EXPECT_FALSE(Names(code, "double ") || Names(code, "float "))
          << At(file, i) << ": state that reaches the trace is counted in integers: " << file.lines[i];
    }
  }
}

// The library's dump() throws at bytes that are no UTF-8, which come with variables, files and names of files;
// JsonText() puts U+FFFD in their place. Who wants the former says why: `// dump: ...`.
TEST(Architecture, JsonIsPrintedByOneFileAlone) {
  for (const SourceFile& file : Cpp()) {
    if (Under(file.path, "oracles")) continue;  // what they print they made
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      const bool prints = line.find(".dump(") != std::string::npos || line.find("->dump(") != std::string::npos;
      if (!prints || line.find("error_handler_t::replace") != std::string::npos) continue;
      EXPECT_NE(line.find("// dump: "), std::string::npos) << At(file, i) << ": JsonText() prints JSON: " << line;
    }
  }
}

// The library's questions to the file system throw at paths that lead in a circle or are too long, unless they are
// given a std::error_code.
TEST(Architecture, NoQuestionToTheFileSystemThrows) {
  const std::vector<std::string> questions = {"exists(",    "is_directory(",    "is_regular_file(",
                                              "file_size(", "last_write_time(", "is_empty("};
  for (const SourceFile& file : Cpp()) {
    if (Under(file.path, "oracles")) continue;  // their folders are our own
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string code = Code(file.lines[i]);
      for (const char* call : {"temp_directory_path()", "is_directory()", "is_regular_file()"}) {
        EXPECT_FALSE(Names(code, call)) << At(file, i) << ": " << file.lines[i];
      }
      const bool asks = std::any_of(questions.begin(), questions.end(), [&](const std::string& question) {
        return Names(code, "fs::" + question) || Names(code, "filesystem::" + question);
      });
      const bool answered = code.find("error") != std::string::npos || code.find("ignored") != std::string::npos ||
                            code.find("(status)") != std::string::npos;
      EXPECT_TRUE(!asks || answered) << At(file, i) << ": give it a std::error_code: " << file.lines[i];
    }
  }
}

// The name that a declaration of an unordered container gives, or "".
std::string UnorderedName(const std::string& code) {
  size_t at = std::string::npos;
  for (const char* type : {"flat_hash_map<", "flat_hash_set<", "node_hash_map<", "node_hash_set<", "unordered_map<",
                           "unordered_set<", "StringMap<"}) {
    at = std::min(at, code.find(type));
  }
  if (at == std::string::npos) return "";
  int depth = 0;
  size_t i = code.find('<', at);
  for (; i < code.size(); ++i) {
    if (code[i] == '<') ++depth;
    if (code[i] == '>' && --depth == 0) break;
  }
  if (i >= code.size()) return "";
  for (++i; i < code.size() && (code[i] == ' ' || code[i] == '&'); ++i) {
  }
  size_t end = i;
  while (end < code.size() && WordChar(code[end])) ++end;
  // A function that returns one, a parameter, or a nested type: no variable of this file.
  if (end == i || end >= code.size() || (code[end] != ';' && code[end] != ' ' && code[end] != '=' && code[end] != ','))
    return "";
  return code.substr(i, end - i);
}

// Iterating a hash table gives another order on another build. Where that cannot reach an output (a sum, a set that is
// sorted afterwards) the line says why: `// order: ...`.
TEST(Architecture, NoUnorderedContainerIsIteratedWithoutSayingWhy) {
  std::map<std::string, std::set<std::string>> declared;  // by path without extension
  const auto stem = [](const std::string& path) { return path.substr(0, path.rfind('.')); };
  for (const SourceFile& file : Cpp()) {
    for (const std::string& line : file.lines) {
      if (const std::string name = UnorderedName(Code(line)); !name.empty()) declared[stem(file.path)].insert(name);
    }
  }
  for (const SourceFile& file : Cpp()) {
    if (!Under(file.path, "core") && !Under(file.path, "fakes") && !Under(file.path, "sim")) continue;
    const std::set<std::string>& names = declared[stem(file.path)];
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string code = Code(file.lines[i]);
      const size_t loop = code.find("for (");
      const size_t colon = code.find(" : ", loop == std::string::npos ? 0 : loop);
      if (loop == std::string::npos || colon == std::string::npos) continue;
      size_t end = colon + 3;
      std::string last;  // identifier of the range
      for (; end < code.size() && code[end] != ')' && code[end] != ' '; ++end) {
        last = WordChar(code[end]) ? last + code[end] : "";
      }
      if (end >= code.size() || code[end] != ')' || last.empty() || !names.contains(last)) continue;
      const bool said = file.lines[i].find("// order:") != std::string::npos ||
                        (i > 0 && file.lines[i - 1].find("// order:") != std::string::npos);
      EXPECT_TRUE(said) << At(file, i) << ": iterates the unordered " << last
                        << "; sort it, or say why its order cannot be seen (`// order: ...`)";
    }
  }
}

// An address differs from run to run. It may say where in a cache to look, no more, and then the line says so.
TEST(Architecture, NoAddressIsANumberWithoutSayingWhy) {
  for (const SourceFile& file : Cpp()) {
    if (!Under(file.path, "core") && !Under(file.path, "fakes") && !Under(file.path, "sim")) continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      if (!Names(Code(file.lines[i]), "uintptr_t")) continue;
      EXPECT_TRUE(file.lines[i].find("// address:") != std::string::npos ||
                  (i > 0 && file.lines[i - 1].find("// address:") != std::string::npos))
          << At(file, i) << ": " << file.lines[i];
    }
  }
}

TEST(Architecture, NoFileNamesAMachineOrARegistry) {
  // Spelled in parts, since this file is read too.
  const std::vector<std::string> banned = {std::string("/ho") + "me/",
                                           std::string("/wo") + "rk/",
                                           std::string("/ro") + "ot/",
                                           std::string("/Us") + "ers/",
                                           std::string("deb.deb") + "ian.org",
                                           std::string("py") + "pi.org",
                                           std::string("files.python") + "hosted",
                                           std::string("registry.np") + "mjs"};
  for (const SourceFile& file : EveryText()) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      for (const std::string& word : banned) {
        EXPECT_EQ(file.lines[i].find(word), std::string::npos) << At(file, i) << ": " << word;
      }
    }
  }
}

TEST(Architecture, NoPrivateKeyIsPartOfTheRepository) {
  const std::string begin = std::string("PRIVATE ") + "KEY-----";
  for (const SourceFile& file : Sources({"scenarios", "docs", "tests"}, {".yaml", ".json", ".pem", ".md", ".key"})) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      EXPECT_EQ(file.lines[i].find(begin), std::string::npos) << At(file, i);
    }
  }
}

// A folder of scenarios/ is a room of sources, a story, or the stories' manifests.
TEST(Architecture, EveryScenarioFolderHoldsAScenario) {
  int found = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(WAVETANK_SOURCE_DIR) / "scenarios")) {
    const std::string name = entry.path().filename();
    if (!entry.is_directory() || name == "manifests") continue;
    if (!fs::exists(entry.path() / "scenario.yaml") && fs::exists(entry.path() / "README.md")) continue;  // a room
    ++found;
    EXPECT_TRUE(fs::exists(entry.path() / "scenario.yaml")) << entry.path().filename();
  }
  EXPECT_GE(found, 4);
}

// What lives here, who may include it, where to start: fifteen lines or so, in every folder that holds sources or data.
TEST(Architecture, EveryRoomSaysWhatItIs) {
  std::set<std::string> rooms = {"core",    "library",   "examples", "core/gen",      "core/config", "fakes",
                                 "oracles", "scenarios", "tests",    "tests/oracles", "bench",       "docs"};
  for (const SourceFile& file : Cpp()) rooms.insert(file.path.substr(0, file.path.rfind('/')));
  for (const std::string& room : rooms) {
    const std::vector<std::string> lines = ReadLines(fs::path(WAVETANK_SOURCE_DIR) / room / "README.md");
    EXPECT_GE(lines.size(), 8u) << room << "/README.md";
    EXPECT_LE(lines.size(), 200u) << room << "/README.md is a manual, not a README";
  }
}

// Every file that a README or a page in docs/ links to is there.
TEST(Architecture, NoDocumentPointsNowhere) {
  std::vector<SourceFile> files = Sources({"core", "fakes", "sim", "replay", "oracles", "scenarios", "record", "import",
                                           "reports", "serve", "library", "cli", "tests", "bench", "docs", "examples"},
                                          {".md"});
  for (const char* top : {"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"}) {
    files.push_back({top, ReadLines(fs::path(WAVETANK_SOURCE_DIR) / top)});
  }
  for (const SourceFile& file : files) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      for (size_t at = line.find("]("); at != std::string::npos; at = line.find("](", at + 1)) {
        std::string target = line.substr(at + 2, line.find(')', at) - at - 2);
        target = target.substr(0, target.find('#'));
        if (target.empty() || target.find("://") != std::string::npos) continue;
        EXPECT_TRUE(fs::exists(fs::path(WAVETANK_SOURCE_DIR) / fs::path(file.path).parent_path() / target))
            << At(file, i) << ": " << target;
      }
    }
  }
}

// Sources end in build lists by themselves; headers are protected, and say what they are before anything else.
TEST(Architecture, HeadersOpenWithWhatTheyAre) {
  for (const SourceFile& file : Cpp()) {
    if (fs::path(file.path).extension() != ".h") continue;
    ASSERT_FALSE(file.lines.empty()) << file.path;
    EXPECT_EQ(file.lines[0].rfind("// ", 0), 0u) << file.path << ": a header opens with a sentence";
    EXPECT_NE(std::find(file.lines.begin(), file.lines.end(), "#pragma once"), file.lines.end()) << file.path;
  }
}

}  // namespace
}  // namespace wavetank
