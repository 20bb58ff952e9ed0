#include "oracles/golden/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/profile/changes.h"
#include "core/registry/multicluster/registries.h"
#include "core/xds/discovery_server.h"
#include "oracles/golden/case.h"
#include "oracles/golden/case_istiod.h"
#include "oracles/golden/expectations.h"
#include "oracles/golden/fetch.h"
#include "oracles/golden/views.h"
#include "oracles/golden/xds_json.h"

namespace wavetank::golden {
namespace {

using nlohmann::json;

constexpr const char* kKinds[] = {"gateways", "services", "shards", "cds",  "eds",
                                  "lds",      "rds",      "ecds",   "push", "push-delta"};

// As the recordings are written: sorted keys, one space of indent.
std::string Pretty(const json& value) { return JsonText(value, 1) + "\n"; }

// What istiod holds now, asked for file by file.
class Actual {
 public:
  Actual(CaseIstiod& istiod, const pilot::Profile& profile) : istiod_(istiod), profile_(profile) {}

  absl::StatusOr<json> Of(const Case& spec, const ExpectedFile& file) {
    pilot::Registries& registries = istiod_.istiod().registries();
    pilot::DiscoveryServer& discovery = istiod_.istiod().discovery();
    if (file.kind == "gateways") {
      const auto gateways = registries.networks().Gateways();
      if (gateways == nullptr) return absl::UnavailableError("istiod has not worked out its gateways");
      return GatewaysView(*gateways);
    }
    if (file.kind == "services") {
      return ServicesView(registries.aggregate(), [&](const pilot::Service& service) {
        return discovery.push_context()->IsClusterLocal(service);
      });
    }
    if (file.kind == "shards") {
      // What such a service's shards hold is a race at the start (Service against EndpointSlice).
      std::set<std::string> hidden;
      if (profile_.Has(pilot::Change::kHiddenServicesKeepShards)) {
        for (const pilot::Registry* registry : registries.aggregate().registries()) {
          for (const pilot::ServiceRef& service : registry->Services()) {
            if (service->attributes.export_to.is_none) hidden.insert(service->attributes.ns + "/" + service->hostname);
          }
        }
      }
      return ShardsView(discovery.endpoints(), hidden);
    }
    if (fetched_.empty()) fetched_ = istiod_.FetchAll();
    for (size_t i = 0; i < spec.proxies.size(); ++i) {
      if (spec.proxies[i].name == file.proxy) return Resources(*fetched_[i], file.kind);
    }
    return absl::NotFoundError(fmt::format("{}: the case has no such proxy", file.proxy));
  }

 private:
  static absl::StatusOr<json> Resources(const Fetch& fetch, const std::string& kind) {
    if (!fetch.status().ok()) return fetch.status();
    const auto it = fetch.resources().find(kind);
    if (it == fetch.resources().end()) return absl::UnavailableError("istiod has not answered");
    // An EnvoyFilter may add a listener under the name of another: both are there, in order.
    std::multimap<std::string_view, const pilot::Resource*> by_name;
    for (const pilot::Resource& resource : it->second) by_name.emplace(resource.name, &resource);
    json out = json::array();
    for (const auto& [name, resource] : by_name) {
      absl::StatusOr<json> value = ResourceToJson(kind, *resource->bytes);
      if (!value.ok()) return absl::Status(value.status().code(), fmt::format("{}: {}", name, Message(value.status())));
      out.push_back(*std::move(value));
    }
    return out;
  }

  CaseIstiod& istiod_;
  const pilot::Profile& profile_;
  std::vector<std::unique_ptr<Fetch>> fetched_;
};

// Recorded files, read and brought into the one form once: most of them hold for several steps.
class Recorded {
 public:
  absl::StatusOr<const json*> Read(const ExpectedFile& file) {
    const auto [it, fresh] = files_.try_emplace(file.path);
    if (!fresh) return &it->second;
    absl::StatusOr<std::string> text = ReadFile(file.path);
    if (!text.ok()) return text.status();
    json value = ParseJson(*text);
    if (value.is_discarded()) return absl::InvalidArgumentError(file.path + ": not valid JSON");
    if (!file.proxy.empty()) {
      for (json& resource : value) {
        absl::StatusOr<json> normal = NormalizeRecorded(file.kind, resource);
        if (!normal.ok()) {
          return absl::InvalidArgumentError(fmt::format("{}: {}", file.path, Message(normal.status())));
        }
        resource = *std::move(normal);
      }
    }
    it->second = std::move(value);
    return &it->second;
  }

 private:
  std::map<std::string, json> files_;
};

FileResult CompareFile(const ExpectedFile& file, size_t step, const json& expected, const json& actual,
                       const RunOptions& options) {
  FileResult out;
  out.step = step;
  out.proxy = file.proxy;
  out.kind = file.kind;
  out.equal = expected == actual;
  if (out.equal) return out;
  out.differences = Compare(expected, actual, options.max_differences);
  if (options.unified_diff) {
    const std::string name =
        fmt::format("{:02}/{}{}{}.json", step, file.proxy, file.proxy.empty() ? "" : "/", file.kind);
    out.unified_diff = UnifiedDiff(Pretty(expected), Pretty(actual), "recorded " + name, "wavetank " + name);
  }
  return out;
}

std::string Shorten(std::string text) {
  constexpr size_t kMost = 300;
  if (text.size() <= kMost) return text;
  text.resize(kMost);
  return text + "...";
}

}  // namespace

bool CaseResult::AllEqual() const {
  return status.ok() && std::all_of(files.begin(), files.end(), [](const FileResult& f) { return f.equal; });
}

CaseResult RunCase(const std::string& directory, const RunOptions& options) {
  CaseResult out;
  out.name = directory;
  const absl::StatusOr<std::string> inputs = InputsOf(directory, options.inputs);
  absl::StatusOr<Case> loaded = inputs.ok() ? LoadCase(*inputs) : inputs.status();
  if (!loaded.ok()) {
    out.status = loaded.status();
    return out;
  }
  const Case& spec = *loaded;
  out.name = spec.name;
  absl::StatusOr<Expectations> expected = Expectations::Load(directory, spec.steps.size());
  if (!expected.ok()) {
    out.status = expected.status();
    return out;
  }
  IstiodSettings settings;
  settings.profile = options.profile;
  CaseIstiod istiod(spec, settings);
  Recorded recordings;
  for (size_t step = 0; step <= spec.steps.size(); ++step) {
    if (step > 0) {
      if (absl::Status status = istiod.Step(step - 1); !status.ok()) {
        out.status = absl::Status(status.code(), fmt::format("step {:02}: {}", step, Message(status)));
        return out;
      }
    }
    Actual actual(istiod, options.profile);
    for (const ExpectedFile& file : expected->ForStep(step)) {
      if (!options.kinds.empty() && !options.kinds.contains(file.kind)) continue;
      absl::StatusOr<const json*> recorded = recordings.Read(file);
      if (!recorded.ok()) {
        out.status = recorded.status();
        return out;
      }
      absl::StatusOr<json> value = actual.Of(spec, file);
      if (!value.ok()) {
        FileResult result{step, file.proxy, file.kind, false, {}, {}};
        result.differences.push_back({"", "", std::string(Message(value.status()))});
        out.files.push_back(std::move(result));
        continue;
      }
      out.files.push_back(CompareFile(file, step, **recorded, *value, options));
    }
  }
  return out;
}

std::vector<CaseResult> RunCases(const std::vector<std::string>& directories, const RunOptions& options, int jobs,
                                 const std::function<void(size_t)>& progress) {
  std::vector<CaseResult> out(directories.size());
  std::atomic<size_t> next = 0, done = 0;
  std::mutex mutex;
  // Each case has a kernel of its own; nothing is shared between threads.
  const auto work = [&] {
    for (size_t i = next++; i < directories.size(); i = next++) {
      out[i] = RunCase(directories[i], options);
      const size_t finished = ++done;
      if (!progress) continue;
      const std::lock_guard<std::mutex> lock(mutex);
      progress(finished);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < jobs; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return out;
}

CaseResult FromPushes(const PushCaseResult& pushes, const std::string& kind, const RunOptions& options) {
  CaseResult out;
  out.name = pushes.name;
  out.status = pushes.status;
  for (const PushFileResult& file : pushes.files) {
    FileResult result;
    result.step = file.step;
    result.proxy = file.file;
    result.kind = kind;
    result.equal = file.equal;
    if (!file.equal) {
      result.differences = Compare(file.expected, file.actual, options.max_differences);
      if (options.unified_diff) {
        const std::string name = fmt::format("{:02}/{}.json", file.step, file.file);
        result.unified_diff =
            UnifiedDiff(Pretty(file.expected), Pretty(file.actual), "recorded " + name, "wavetank " + name);
      }
    }
    out.files.push_back(std::move(result));
  }
  return out;
}

namespace {

// All files of all steps, by path below expect/.
absl::StatusOr<std::map<std::string, std::string>> Outputs(const Case& spec, const RunOptions& options) {
  std::map<std::string, std::string> out;
  IstiodSettings settings;
  settings.profile = options.profile;
  CaseIstiod istiod(spec, settings);
  std::map<std::string, std::string> last;
  for (size_t step = 0; step <= spec.steps.size(); ++step) {
    if (step > 0) {
      if (absl::Status status = istiod.Step(step - 1); !status.ok()) return status;
    }
    Actual actual(istiod, options.profile);
    std::vector<ExpectedFile> files = {{"", "gateways", ""}, {"", "services", ""}, {"", "shards", ""}};
    for (const ProxySpec& proxy : spec.proxies) {
      for (const std::string& kind : proxy.record) files.push_back({proxy.name, kind, ""});
    }
    for (const ExpectedFile& file : files) {
      absl::StatusOr<json> value = actual.Of(spec, file);
      if (!value.ok()) return value.status();
      const std::string path = file.proxy.empty() ? file.kind + ".json" : file.proxy + "/" + file.kind + ".json";
      std::string text = Pretty(*value);
      std::string& before = last[path];
      if (text == before) continue;
      out[fmt::format("{:02}/{}", step, path)] = before = std::move(text);
    }
  }
  return out;
}

}  // namespace

absl::Status RecordCase(const std::string& directory, const RunOptions& options) {
  namespace fs = std::filesystem;
  absl::StatusOr<Case> loaded = LoadCase(directory);
  if (!loaded.ok()) return loaded.status();
  absl::StatusOr<std::map<std::string, std::string>> first = Outputs(*loaded, options);
  if (!first.ok()) return first.status();
  absl::StatusOr<std::map<std::string, std::string>> second = Outputs(*loaded, options);
  if (!second.ok()) return second.status();
  if (*first != *second) return absl::InternalError(directory + ": two runs differ; nothing was recorded");
  const fs::path expect = fs::path(directory) / "expect";
  std::error_code error;
  fs::remove_all(expect, error);
  for (size_t step = 0; step <= loaded->steps.size() && !error; ++step) {
    fs::create_directories(expect / fmt::format("{:02}", step), error);
  }
  for (const auto& [path, text] : *first) {
    fs::create_directories((expect / path).parent_path(), error);
    std::ofstream(expect / path, std::ios::binary) << text;
  }
  if (error) return absl::UnavailableError(fmt::format("{}: {}", expect.string(), error.message()));
  return absl::OkStatus();
}

std::map<std::string, Tally> TallyByKind(const std::vector<CaseResult>& results) {
  std::map<std::string, Tally> out;
  for (const CaseResult& result : results) {
    std::map<std::string, bool> all_equal;
    for (const FileResult& file : result.files) {
      Tally& tally = out[file.kind];
      ++tally.compared;
      tally.equal += file.equal;
      const auto it = all_equal.try_emplace(file.kind, true).first;
      it->second = it->second && file.equal;
    }
    for (const auto& [kind, equal] : all_equal) {
      ++out[kind].cases;
      out[kind].cases_equal += equal;
    }
  }
  return out;
}

std::string TallyTable(const std::vector<CaseResult>& results) {
  std::map<std::string, Tally> tallies = TallyByKind(results);
  std::string out =
      fmt::format("{:<10} {:>8} {:>8} {:>10}   {:>6} {:>6}\n", "KIND", "FILES", "EQUAL", "DIFFERENT", "CASES", "EQUAL");
  const auto line = [&](const std::string& kind, const Tally& t) {
    out += fmt::format("{:<10} {:>8} {:>8} {:>10}   {:>6} {:>6}\n", kind, t.compared, t.equal, t.compared - t.equal,
                       t.cases, t.cases_equal);
  };
  for (const char* kind : kKinds) {
    if (tallies.contains(kind)) line(kind, tallies[kind]);
  }
  for (const auto& [kind, tally] : tallies) {
    if (std::find(std::begin(kKinds), std::end(kKinds), kind) == std::end(kKinds)) line(kind, tally);
  }
  Tally all;
  for (const CaseResult& result : results) {
    ++all.cases;
    all.cases_equal += result.AllEqual();
    for (const FileResult& file : result.files) {
      ++all.compared;
      all.equal += file.equal;
    }
  }
  line("all", all);
  return out;
}

std::string DifferencesText(const CaseResult& result) {
  std::string out;
  if (!result.status.ok()) out += fmt::format("{}: {}\n", result.name, Message(result.status));
  for (const FileResult& file : result.files) {
    if (file.equal) continue;
    out += fmt::format("{} step {:02} {}{}{}\n", result.name, file.step, file.proxy, file.proxy.empty() ? "" : " ",
                       file.kind);
    for (const Difference& difference : file.differences) {
      out += fmt::format("  {}\n    recorded {}\n    wavetank {}\n", difference.path,
                         difference.expected.empty() ? "(absent)" : Shorten(difference.expected),
                         difference.actual.empty() ? "(absent)" : Shorten(difference.actual));
    }
    out += file.unified_diff;
  }
  return out;
}

json ToJson(const std::vector<CaseResult>& results) {
  json cases = json::array();
  for (const CaseResult& result : results) {
    json files = json::array();
    for (const FileResult& file : result.files) {
      json entry = {{"step", file.step}, {"kind", file.kind}, {"equal", file.equal}};
      if (!file.proxy.empty()) entry["proxy"] = file.proxy;
      for (const Difference& difference : file.differences) {
        entry["differences"].push_back(
            {{"path", difference.path}, {"recorded", difference.expected}, {"wavetank", difference.actual}});
      }
      files.push_back(std::move(entry));
    }
    json entry = {{"case", result.name}, {"equal", result.AllEqual()}, {"files", std::move(files)}};
    if (!result.status.ok()) entry["error"] = Message(result.status);
    cases.push_back(std::move(entry));
  }
  json kinds = json::object();
  for (const auto& [kind, tally] : TallyByKind(results)) {
    kinds[kind] = {{"compared", tally.compared}, {"equal", tally.equal}, {"different", tally.compared - tally.equal}};
  }
  return {{"cases", std::move(cases)}, {"kinds", std::move(kinds)}};
}

}  // namespace wavetank::golden
