#include "cli/mesh/apply_to_server.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>

#include "absl/strings/ascii.h"
#include "cli/verb.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "fakes/kube/http/transport/fetch.h"
#include "fmt/format.h"
#include "scenarios/mesh/installer_files.h"
#include "scenarios/mesh/manifests.h"
#include "serve/kube/kube_frontend.h"

namespace wavetank::cli {
namespace {

using fakekube::http::Answer;
using fakekube::http::Outgoing;
using nlohmann::json;

constexpr Duration kPatience = 10s;

// One cluster's API: where a kind is found, it says itself.
class Api {
 public:
  Api(std::string server, std::string token) : server_(std::move(server)), token_(std::move(token)) {}

  // NotFound: it serves no such kind.
  absl::StatusOr<std::string> PathOf(const json& object) {
    const std::string version = object.value("apiVersion", ""), kind = object.value("kind", "");
    const std::string root = (version.find('/') == std::string::npos ? "/api/" : "/apis/") + version;
    auto found = resources_.find(version);
    if (found == resources_.end()) {
      const absl::StatusOr<Answer> answer = fakekube::http::Send({server_, "GET", root, "", "", token_}, kPatience);
      if (!answer.ok()) return answer.status();
      json list = answer->status == 200 ? ParseJson(answer->body) : json();
      found =
          resources_.emplace(version, list.is_object() ? list.value("resources", json::array()) : json::array()).first;
    }
    for (const json& resource : found->second) {
      const std::string name = resource.value("name", "");
      if (resource.value("kind", "") != kind || name.find('/') != std::string::npos) continue;
      const json& meta = object.at("metadata");
      std::string path = root;
      if (resource.value("namespaced", false)) path += "/namespaces/" + meta.value("namespace", "default");
      return path + "/" + name + "/" + meta.value("name", "");
    }
    return absl::NotFoundError(fmt::format("the server serves no {} of {}", kind, version));
  }

  absl::Status Apply(const json& object) {
    absl::StatusOr<std::string> path = PathOf(object);
    if (!path.ok()) return path.status();
    const absl::StatusOr<Answer> answer =
        fakekube::http::Send({server_, "PATCH", *path + "?fieldManager=wavetank&force=true",
                              "application/apply-patch+yaml", JsonText(object), token_},
                             kPatience);
    if (!answer.ok()) return answer.status();
    if (answer->status == 200 || answer->status == 201) return absl::OkStatus();
    const json status = ParseJson(answer->body);
    return absl::FailedPreconditionError(status.is_object() && status.contains("message")
                                             ? status.value("message", "")
                                             : fmt::format("the server answers {}", answer->status));
  }

 private:
  const std::string server_, token_;
  std::map<std::string, json> resources_;  // by version: what the API's discovery says
};

}  // namespace

int ApplyToServer(const std::vector<scenario::SurveyCluster>& clusters, const std::string& server,
                  const std::string& token_file) {
  std::string token;
  if (!token_file.empty()) {
    absl::StatusOr<std::string> read = ReadToken(token_file);
    if (!read.ok()) return Complain(read.status());
    token = *std::move(read);
  }
  const absl::StatusOr<std::string> listing =
      fakekube::http::Fetch("http://" + server, std::string(serve::kClustersPath), kPatience);
  if (absl::IsFailedPrecondition(listing.status())) {
    return Complain(absl::FailedPreconditionError(
        fmt::format("{}; if it speaks TLS, apply with kubectl", std::string(listing.status().message()))));
  }
  if (!listing.ok()) return Complain(listing.status());
  const json served = ParseJson(*listing);
  if (!served.is_array()) {
    return Complain(absl::FailedPreconditionError(fmt::format("what answers at {} is no wavetank", server)));
  }
  // Everything is read, and every cluster found, before anything is applied.
  std::vector<std::pair<std::string, std::vector<json>>> work;  // API, objects
  std::vector<std::string> notes;
  for (const scenario::SurveyCluster& cluster : clusters) {
    std::string api, all;
    for (const json& entry : served) {
      all += (all.empty() ? "" : ", ") + entry.value("cluster", "");
      if (entry.value("cluster", "") == cluster.name) api = entry.value("server", "");
    }
    if (api.empty()) {
      return Complain(absl::NotFoundError(
          fmt::format("the server has no cluster '{}'; it has {} (--cluster NAME=FILE names one)", cluster.name, all)));
    }
    scenario::ClusterSpec spec;
    spec.name = cluster.name;
    for (const std::string& path : cluster.paths) spec.manifests.push_back({path, cluster.ns, ""});
    if (absl::Status status = scenario::GiveSettings(cluster.set, &spec); !status.ok()) return Complain(status);
    absl::StatusOr<std::vector<json>> objects = scenario::LoadClusterManifests(spec, &notes);
    if (!objects.ok()) return Complain(objects.status());
    std::stable_partition(objects->begin(), objects->end(), [](const json& object) {
      const std::string kind = object.value("kind", "");
      return kind == "Namespace" || kind == "CustomResourceDefinition";
    });
    work.emplace_back(api, *std::move(objects));
  }
  int code = kOk;
  for (size_t i = 0; i < work.size(); ++i) {
    Api api(work[i].first, token);
    for (const json& object : work[i].second) {
      const std::string name =
          fmt::format("{}: {}/{}", clusters[i].name, absl::AsciiStrToLower(object.value("kind", "")),
                      object["metadata"].value("name", ""));
      if (absl::Status status = api.Apply(object); status.ok()) {
        std::cout << name << " applied\n";
      } else {
        std::fprintf(stderr, "wavetank: %s: %s\n", name.c_str(), std::string(Message(status)).c_str());
        code = kNo;
      }
    }
  }
  for (const std::string& note : notes) std::cout << "note: " << note << "\n";
  return code;
}

}  // namespace wavetank::cli
