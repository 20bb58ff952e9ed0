#include "oracles/golden/push_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/model/proxy.h"
#include "core/xds/push_observer.h"
#include "oracles/golden/case.h"
#include "oracles/golden/case_istiod.h"
#include "oracles/golden/push_client.h"
#include "oracles/golden/xds_json.h"

namespace wavetank::golden {
namespace {

using nlohmann::json;
using pilot::XdsType;

json Reasons(const pilot::PushRequest& request) {
  json out = json::array();
  for (std::string_view name : pilot::ReasonNames(request.reasons)) out.push_back(name);
  return out;
}

// Writes down what happens in the words of the recordings.
class Recorder final : public pilot::PushObserver {
 public:
  // Names proxies by their id, "pod.namespace".
  std::map<std::string, std::string> names;

  void OnPush(const pilot::PushRequest& request) override {
    json configs = json::array();
    std::set<std::string> keys;
    for (const pilot::ConfigKey& key : request.configs_updated) {
      keys.insert(fmt::format("{}/{}/{}", pilot::ConfigKindName(key.kind), key.ns, key.name));
    }
    for (const std::string& key : keys) configs.push_back(key);
    pushes_.push_back(
        {{"trigger", request.full ? "full" : "incremental"}, {"reasons", Reasons(request)}, {"configs", configs}});
  }

  void OnPushEvent(const pilot::Proxy& proxy, const pilot::PushRequest& request, bool skipped) override {
    json event = {{"trigger", request.full ? "full" : "incremental"}, {"reasons", Reasons(request)}};
    if (skipped) {
      event["skipped"] = true;
    } else {
      event["responses"] = json::array();
    }
    Of(proxy).pushes.push_back(std::move(event));
  }

  void OnResponse(const pilot::Proxy& proxy, const pilot::PushRequest& request, const pilot::WatchedResource& watched,
                  const pilot::DiscoveryResponse& response) override {
    Held& held = Of(proxy).held[response.type];
    json out = Start(response.type, response.resources.size());
    const bool complete = response.type == XdsType::kCds || response.type == XdsType::kLds;
    std::set<std::string> sent, added, removed, changed;
    for (const pilot::Resource& resource : response.resources) {
      sent.emplace(resource.name);
      const auto it = held.find(resource.name);
      if (it == held.end()) {
        (complete ? added : changed).emplace(resource.name);
      } else if (*it->second != *resource.bytes) {
        changed.emplace(resource.name);
      }
    }
    if (complete) {
      for (const auto& [name, bytes] : held) {
        if (!sent.contains(name)) removed.insert(name);
      }
      held.clear();
    } else {
      Names(out, sent, {watched.resource_names.begin(), watched.resource_names.end()});
    }
    for (const pilot::Resource& resource : response.resources) held[std::string(resource.name)] = resource.bytes;
    if (response.type == XdsType::kCds) Forget(Of(proxy), held, XdsType::kEds);
    Put(out, "added", added);
    Put(out, "removed", removed);
    Put(out, "changed", changed);
    Append(proxy, request, std::move(out));
  }

  void OnDeltaResponse(const pilot::Proxy& proxy, const pilot::PushRequest& request,
                       const pilot::WatchedResource& watched, const pilot::DeltaDiscoveryResponse& response) override {
    Held& held = Of(proxy).held[response.type];
    json out = Start(response.type, response.resources.size());
    std::set<std::string> sent, changed;
    for (const pilot::Resource& resource : response.resources) {
      sent.emplace(resource.name);
      const auto it = held.find(resource.name);
      if (it == held.end() || *it->second != *resource.bytes) changed.emplace(resource.name);
      held[std::string(resource.name)] = resource.bytes;
    }
    for (const std::string& name : response.removed_resources) held.erase(name);
    if (response.type == XdsType::kCds || response.type == XdsType::kLds) {
      std::set<std::string> whole;
      for (const auto& [name, bytes] : held) whole.insert(name);
      out["resources"] = sent == whole ? json("all") : json(sent);
    } else {
      Names(out, sent, {watched.resource_names.begin(), watched.resource_names.end()});
    }
    Put(out, "changed", changed);
    Put(out, "removed", {response.removed_resources.begin(), response.removed_resources.end()});
    Append(proxy, request, std::move(out));
  }

  // What happened since the last call, by file.
  std::map<std::string, json> Take() {
    std::map<std::string, json> out;
    out["server"] = {{"pushes", std::exchange(pushes_, json::array())}};
    for (auto& [name, proxy] : proxies_) {
      const json pushes = std::exchange(proxy.pushes, json::array());
      const json requests = std::exchange(proxy.requests, json::array());
      if (pushes.empty() && requests.empty()) continue;
      json file = {{"pushes", pushes}};
      if (!requests.empty()) file["requests"] = requests;
      out[name] = std::move(file);
    }
    return out;
  }

 private:
  using Held = std::map<std::string, BytesRef, std::less<>>;
  struct ProxyRecord {
    json pushes = json::array(), requests = json::array();
    std::map<XdsType, Held> held;
  };

  // Endpoints of clusters that the client does not hold any more: what comes under such a name is new to it.
  static void Forget(ProxyRecord& record, const Held& clusters, XdsType type) {
    std::vector<std::string_view> bytes;
    for (const auto& [name, resource] : clusters) bytes.push_back(*resource);
    const std::vector<std::string> names = EdsNames(bytes);
    std::erase_if(record.held[type],
                  [&](const auto& entry) { return !std::binary_search(names.begin(), names.end(), entry.first); });
  }
  ProxyRecord& Of(const pilot::Proxy& proxy) {
    const auto it = names.find(proxy.id);
    return proxies_[it == names.end() ? proxy.id : it->second];
  }
  static json Start(XdsType type, size_t count) {
    std::string name(pilot::ShortTypeName(type));
    std::transform(name.begin(), name.end(), name.begin(), [](char c) { return static_cast<char>(c | 0x20); });
    return {{"type", name}, {"count", count}};
  }
  static void Put(json& out, const char* key, const std::set<std::string>& names) {
    if (!names.empty()) out[key] = names;
  }
  static void Names(json& out, const std::set<std::string>& sent, const std::set<std::string>& whole) {
    if (sent == whole && sent.size() >= 2) {
      out["resources"] = "all";
    } else {
      out["resources"] = sent;
    }
  }
  void Append(const pilot::Proxy& proxy, const pilot::PushRequest& request, json response) {
    ProxyRecord& record = Of(proxy);
    if (request.IsRequest()) {
      response["after"] = record.pushes.size();
      record.requests.push_back(std::move(response));
    } else if (!record.pushes.empty()) {
      record.pushes.back()["responses"].push_back(std::move(response));
    }
  }

  json pushes_ = json::array();
  std::map<std::string, ProxyRecord> proxies_;
};

absl::StatusOr<json> ReadJson(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status();
  json out = ParseJson(*text);
  if (out.is_discarded()) return absl::InvalidArgumentError(path + ": no JSON");
  return out;
}

std::string StepFolder(const std::string& recorded, size_t step) { return fmt::format("{}/{:02}", recorded, step); }

}  // namespace

bool PushCaseResult::AllEqual() const {
  return status.ok() && std::all_of(files.begin(), files.end(), [](const PushFileResult& f) { return f.equal; });
}

PushCaseResult RunPushCase(const std::string& case_directory, const std::string& recorded, const PushOptions& options) {
  PushCaseResult result;
  result.name = std::filesystem::path(recorded).filename().string();
  const absl::StatusOr<Case> loaded = LoadCase(case_directory);
  if (!loaded.ok()) {
    result.status = loaded.status();
    return result;
  }
  // The proxies that are compared at all; every one, where nothing is recorded yet.
  std::set<std::string> mentioned = {"server"};
  if (!std::filesystem::exists(recorded)) {
    for (const ProxySpec& proxy : loaded->proxies) mentioned.insert(proxy.name);
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(recorded, error)) {
    if (entry.path().extension() == ".json") mentioned.insert(entry.path().stem().string());
  }

  Recorder recorder;
  IstiodSettings settings;
  settings.profile = options.profile;
  settings.debounce_after = 100ms;
  settings.observer = &recorder;
  CaseIstiod istiod(*loaded, std::move(settings));
  std::vector<std::unique_ptr<PushClient>> clients;
  Host& host = istiod.kernel().NewHost("clients", 0, nullptr);
  for (const ProxySpec& proxy : loaded->proxies) {
    recorder.names[proxy.name + "." + proxy.ns] = proxy.name;
    clients.push_back(std::make_unique<PushClient>(istiod.istiod(), host, istiod.Connecting(proxy), options.delta));
    istiod.Settle();
    if (!clients.back()->status().ok()) {
      result.status = absl::FailedPreconditionError(
          fmt::format("{} cannot connect: {}", proxy.name, Message(clients.back()->status())));
      return result;
    }
  }
  (void)recorder.Take();

  for (size_t i = 0; i < loaded->steps.size(); ++i) {
    result.status = istiod.Step(i);
    if (!result.status.ok()) return result;
    std::map<std::string, json> actual = recorder.Take();
    for (const std::string& file : mentioned) {
      const std::string path = fmt::format("{}/{}.json", StepFolder(recorded, i + 1), file);
      PushFileResult one;
      one.step = i + 1;
      one.file = file;
      if (std::filesystem::exists(path, error)) {
        absl::StatusOr<json> expected = ReadJson(path);
        if (!expected.ok()) {
          result.status = expected.status();
          return result;
        }
        one.expected = *std::move(expected);
      }
      if (const auto it = actual.find(file); it != actual.end()) one.actual = it->second;
      one.equal = one.expected == one.actual;
      result.files.push_back(std::move(one));
    }
  }
  return result;
}

absl::Status WritePushes(const PushCaseResult& result, const std::string& recorded) {
  if (!result.status.ok()) return result.status;
  std::error_code error;
  std::filesystem::remove_all(recorded, error);
  for (const PushFileResult& file : result.files) {
    if (file.actual.is_null()) continue;
    const std::string folder = StepFolder(recorded, file.step);
    std::filesystem::create_directories(folder, error);
    // One entry per line, as the recordings have them.
    std::string text = "{";
    for (const auto& [key, entries] : file.actual.items()) {
      text += fmt::format("{}\n \"{}\": [", text.size() > 1 ? "," : "", key);
      for (size_t i = 0; i < entries.size(); ++i) text += (i == 0 ? "\n  " : ",\n  ") + JsonText(entries[i]);
      text += "]";
    }
    std::ofstream(fmt::format("{}/{}.json", folder, file.file)) << text << "\n}\n";
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PushCaseResult>> RunPushCases(const std::string& golden, const std::string& glob,
                                                         const PushOptions& options) {
  const std::string folder = golden + (options.delta ? "/push-delta" : "/push");
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    if (entry.is_directory() && MatchesGlob(glob, name)) names.push_back(std::move(name));
  }
  if (names.empty()) return absl::NotFoundError(fmt::format("no recording in {} matches '{}'", folder, glob));
  std::sort(names.begin(), names.end());
  std::vector<PushCaseResult> out;
  for (const std::string& name : names) {
    std::string directory = fmt::format("{}/push-cases/{}", golden, name);
    if (!std::filesystem::exists(directory, error)) directory = fmt::format("{}/cases/{}", golden, name);
    out.push_back(RunPushCase(directory, folder + "/" + name, options));
  }
  return out;
}

std::string PushDifferencesText(const PushCaseResult& result) {
  std::string out;
  if (!result.status.ok()) out += fmt::format("{}: {}\n", result.name, Message(result.status));
  for (const PushFileResult& file : result.files) {
    if (file.equal) continue;
    out += fmt::format("{} step {:02} {}\n", result.name, file.step, file.file);
    for (const char* key : {"pushes", "requests"}) {
      const json none = json::array();
      const json expected = file.expected.is_object() ? file.expected.value(key, none) : none;
      const json actual = file.actual.is_object() ? file.actual.value(key, none) : none;
      for (size_t i = 0; i < std::max(expected.size(), actual.size()); ++i) {
        const json e = i < expected.size() ? expected[i] : json(), a = i < actual.size() ? actual[i] : json();
        if (e != a)
          out += fmt::format("  {}[{}] expected {}\n  {}[{}] actual   {}\n", key, i, JsonText(e), key, i, JsonText(a));
      }
    }
  }
  return out;
}

}  // namespace wavetank::golden
