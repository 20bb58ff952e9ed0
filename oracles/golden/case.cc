#include "oracles/golden/case.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "core/base/status.h"
#include "core/kube/yaml.h"
#include "fakes/kube/objects/manifest.h"

namespace wavetank::golden {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Fields of one mapping of a case file; the first that is missing or of another type is the error.
class Fields {
 public:
  Fields(const json& value, std::string where) : value_(value), where_(std::move(where)) {
    if (!value.is_object()) Fail("", "expected a mapping");
  }

  std::string Text(const char* name, bool required = false) {
    const json* field = Find(name);
    if (field == nullptr) {
      if (required) Fail(name, "is missing; see docs/golden-cases.md");
      return {};
    }
    // A name such as 1234 or no would be read as a number or boolean.
    if (!field->is_string()) Fail(name, "expected text; quote it");
    return field->is_string() ? field->get<std::string>() : std::string();
  }

  std::vector<std::string> Texts(const char* name) {
    std::vector<std::string> out;
    const json* field = Find(name);
    if (field == nullptr) return out;
    if (!field->is_array()) Fail(name, "expected a list of texts");
    for (const json& item : *field) {
      if (!item.is_string()) Fail(name, "expected a list of texts");
      if (item.is_string()) out.push_back(item.get<std::string>());
    }
    return out;
  }

  const json& Mapping(const char* name) {
    static const json kEmpty = json::object();
    const json* field = Find(name);
    if (field == nullptr) return kEmpty;
    if (field->is_object()) return *field;
    Fail(name, "expected a mapping");
    return kEmpty;
  }

  const json& List(const char* name) {
    static const json kEmpty = json::array();
    const json* field = Find(name);
    if (field == nullptr) return kEmpty;
    if (field->is_array()) return *field;
    Fail(name, "expected a list");
    return kEmpty;
  }

  const json* Find(const char* name) const {
    if (!value_.is_object()) return nullptr;
    const auto it = value_.find(name);
    return it == value_.end() || it->is_null() ? nullptr : &*it;
  }

  void Fail(std::string_view field, std::string_view what) {
    if (status_.ok()) {
      status_ = absl::InvalidArgumentError(fmt::format("{}{}{}: {}", where_, field.empty() ? "" : ": ", field, what));
    }
  }
  const absl::Status& status() const { return status_; }

 private:
  const json& value_;
  std::string where_;
  absl::Status status_;
};

kube::Labels ToLabels(const json& mapping, Fields& fields, const char* name) {
  kube::Labels out;
  for (const auto& [key, value] : mapping.items()) {
    if (!value.is_string()) fields.Fail(name, fmt::format("{}: expected text; quote it", key));
    if (value.is_string()) out.emplace(key, value.get<std::string>());
  }
  return out;
}

absl::StatusOr<json> ReadYaml(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status();
  return kube::ParseYaml(*text, path);
}

absl::StatusOr<ProxySpec> ReadProxy(const json& value, const std::string& where) {
  Fields fields(value, where);
  ProxySpec out;
  out.name = fields.Text("name", true);
  out.cluster = fields.Text("cluster");
  out.network = fields.Text("network");
  out.type = fields.Text("type", true);
  out.ns = fields.Text("namespace", true);
  out.ip = fields.Text("ip", true);
  out.locality = fields.Text("locality");
  out.service_account = fields.Text("serviceAccount");
  out.node = fields.Text("node");
  out.node_cluster = fields.Text("nodeCluster");
  out.labels = ToLabels(fields.Mapping("labels"), fields, "labels");
  out.metadata = fields.Mapping("metadata");
  static const std::set<std::string> kTypes = {"cds", "eds", "lds", "rds", "ecds"};
  out.record = {"cds", "eds", "lds", "rds"};
  if (fields.Find("record") != nullptr) {
    const std::vector<std::string> record = fields.Texts("record");
    out.record = {record.begin(), record.end()};
    for (const std::string& type : record) {
      if (!kTypes.contains(type)) fields.Fail("record", fmt::format("'{}' is none of cds, eds, lds, rds, ecds", type));
    }
  }
  if (out.type != "sidecar" && out.type != "router") fields.Fail("type", "expected sidecar or router");
  if (!fields.status().ok()) return fields.status();
  return out;
}

absl::StatusOr<Operation> ReadOperation(const json& value, const std::string& where) {
  Fields fields(value, where);
  Operation out;
  const std::string op = fields.Text("op", true);
  out.cluster = fields.Text("cluster");
  const char* content = "object";
  if (op == "apply") {
    out.kind = Operation::Kind::kApply;
  } else if (op == "delete") {
    out.kind = Operation::Kind::kDelete;
  } else if (op == "meshConfig" || op == "meshNetworks") {
    out.kind = op == "meshConfig" ? Operation::Kind::kMeshConfig : Operation::Kind::kMeshNetworks;
    content = "value";
  } else if (op == "settle" || op == "connect") {
    // New connections are made after every step anyway.
    out.kind = Operation::Kind::kSettle;
    content = nullptr;
  } else {
    fields.Fail("op", fmt::format("'{}' is none of apply, delete, meshConfig, meshNetworks, settle", op));
  }
  if (content != nullptr) out.value = fields.Mapping(content);
  if (content == std::string_view("object")) {
    if (absl::StatusOr<kube::ObjectRef> object = kube::Object::FromJson(out.value); !object.ok()) {
      fields.Fail("object", Message(object.status()));
    }
  }
  if (!fields.status().ok()) return fields.status();
  return out;
}

}  // namespace

std::string ProxySpec::NodeId() const {
  return fmt::format("{}~{}~{}.{}~{}.svc.cluster.local", type, ip, pod.empty() ? name : pod, ns, ns);
}

json ProxySpec::NodeMetadata() const {
  json out = {{"CLUSTER_ID", cluster},
              {"NAMESPACE", ns},
              {"ISTIO_VERSION", istio_version},
              {"MESH_ID", "mesh1"},
              {"NAME", pod.empty() ? name : pod},
              {"INSTANCE_IPS", ip},
              {"SERVICE_ACCOUNT", service_account},
              {"NODE_NAME", node},
              {"LABELS", labels}};
  if (!network.empty()) out["NETWORK"] = network;
  for (const auto& [key, value] : metadata.items()) out[key] = value;
  return out;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(fmt::format("{}: cannot be read; check the path and its permissions", path));
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

absl::StatusOr<Case> LoadCase(const std::string& directory) {
  const std::string file = (fs::path(directory) / "case.yaml").string();
  absl::StatusOr<json> root = ReadYaml(file);
  if (!root.ok()) return root.status();
  Fields fields(*root, file);
  Case out;
  out.directory = directory;
  out.name = fields.Text("name", true);
  out.description = fields.Text("description");
  out.tags = fields.Texts("tags");
  out.config_cluster = fields.Text("configCluster", true);
  out.mesh_config = fields.Mapping("meshConfig");
  if (fields.Find("meshNetworks") != nullptr) out.mesh_networks = fields.Mapping("meshNetworks");
  for (const auto& [name, addresses] : fields.Mapping("dns").items()) {
    std::vector<std::string>& answer = out.dns[name];
    for (const json& address : addresses) {
      if (!address.is_string()) fields.Fail("dns", fmt::format("{}: expected a list of IPs", name));
      if (address.is_string()) answer.push_back(address.get<std::string>());
    }
  }
  const json& proxies = fields.List("proxies");
  for (size_t i = 0; i < proxies.size(); ++i) {
    absl::StatusOr<ProxySpec> proxy = ReadProxy(proxies[i], fmt::format("{}: proxies[{}]", file, i));
    if (!proxy.ok()) return proxy.status();
    out.proxies.push_back(*std::move(proxy));
  }
  std::vector<std::pair<std::string, std::string>> step_files;
  for (const json& step : fields.List("steps")) {
    Fields s(step, file + ": steps");
    step_files.emplace_back(s.Text("name", true), s.Text("file", true));
    if (!s.status().ok()) return s.status();
  }
  if (!fields.status().ok()) return fields.status();

  for (const auto& [name, step_file] : step_files) {
    const std::string path = (fs::path(directory) / step_file).string();
    absl::StatusOr<json> operations = ReadYaml(path);
    if (!operations.ok()) return operations.status();
    if (!operations->is_array()) return absl::InvalidArgumentError(path + ": expected a list of operations");
    Step step{name, {}};
    for (size_t i = 0; i < operations->size(); ++i) {
      absl::StatusOr<Operation> operation = ReadOperation((*operations)[i], fmt::format("{}: [{}]", path, i));
      if (!operation.ok()) return operation.status();
      step.operations.push_back(*std::move(operation));
    }
    out.steps.push_back(std::move(step));
  }

  std::error_code error;
  const fs::path clusters = fs::path(directory) / "clusters";
  for (const auto& entry : fs::directory_iterator(clusters, error)) {
    if (entry.path().extension() != ".yaml") continue;
    absl::StatusOr<std::vector<fakekube::Manifest>> manifests = fakekube::LoadManifests(entry.path().string());
    if (!manifests.ok()) return manifests.status();
    std::vector<json>& objects = out.clusters[entry.path().stem().string()];
    for (fakekube::Manifest& manifest : *manifests) objects.push_back(std::move(manifest.object));
  }
  if (error) return absl::NotFoundError(fmt::format("{}: {}", clusters.string(), error.message()));
  if (!out.clusters.contains(out.config_cluster)) {
    return absl::InvalidArgumentError(
        fmt::format("{}: configCluster: {} has no {}.yaml", file, clusters.string(), out.config_cluster));
  }
  return out;
}

absl::StatusOr<std::vector<std::string>> FindCases(const std::string& directory) {
  std::error_code error;
  const auto is_case = [&](const fs::path& folder) {
    return fs::exists(folder / "case.yaml", error) || fs::is_directory(folder / "expect", error);
  };
  if (is_case(directory)) return std::vector<std::string>{directory};
  std::vector<std::string> out;
  const fs::path below = fs::path(directory) / "cases";
  for (const auto& entry :
       fs::directory_iterator(fs::is_directory(below, error) ? below : fs::path(directory), error)) {
    if (is_case(entry.path())) out.push_back(entry.path().string());
  }
  if (error) return absl::NotFoundError(fmt::format("{}: {}; name a folder of cases", directory, error.message()));
  if (out.empty()) {
    return absl::NotFoundError(
        fmt::format("{}: holds no case (no case.yaml in it or in its folders); name a folder of cases", directory));
  }
  std::sort(out.begin(), out.end());
  return out;
}

absl::StatusOr<std::string> InputsOf(const std::string& case_directory, const std::string& inputs) {
  const fs::path own = fs::path(case_directory).lexically_normal();
  const fs::path folder = own.has_filename() ? own : own.parent_path();
  std::error_code error;
  std::vector<fs::path> candidates = {folder};
  if (!inputs.empty()) {
    candidates.push_back(fs::path(inputs) / folder.filename());
    candidates.push_back(fs::path(inputs) / "cases" / folder.filename());
  } else {
    const fs::path recordings = fs::absolute(folder, error).parent_path().parent_path();
    const std::string name = recordings.filename().string();
    candidates.push_back(recordings.parent_path() / name.substr(0, name.rfind('-')) / "cases" / folder.filename());
  }
  for (const fs::path& candidate : candidates) {
    if (fs::exists(candidate / "case.yaml", error)) return candidate.string();
  }
  return absl::NotFoundError(
      fmt::format("{}: holds no case.yaml, nor does {}; name the folder of the inputs with --inputs", case_directory,
                  candidates.back().string()));
}

bool MatchesGlob(std::string_view pattern, std::string_view name) {
  // Back to the last star whenever the text after it does not fit.
  size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace wavetank::golden
