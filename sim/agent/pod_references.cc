#include "sim/agent/pod_references.h"

#include <initializer_list>
#include <string_view>

#include "core/base/json_access.h"
#include "core/security/namespace_controller.h"
#include "fmt/format.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;

struct Reference {
  std::string_view kind, member, name;  // of a volume: the member that refers, and its field with the name
};
constexpr Reference kOfVolumes[] = {{"ConfigMap", "configMap", "name"}, {"Secret", "secret", "secretName"}};
constexpr Reference kOfProjections[] = {{"ConfigMap", "configMap", "name"}, {"Secret", "secret", "name"}};
constexpr Reference kOfVariables[] = {{"ConfigMap", "configMapKeyRef", "name"}, {"Secret", "secretKeyRef", "name"}};
constexpr Reference kOfAllVariables[] = {{"ConfigMap", "configMapRef", "name"}, {"Secret", "secretRef", "name"}};

// Objects of other programs', each of which makes a Secret of what stands outside of the cluster.
struct Maker {
  std::string_view kind;
  std::initializer_list<std::string_view> name;  // where the Secret's name stands, if it is not the object's
};
const Maker kMakers[] = {{"ExternalSecret.external-secrets.io", {"spec", "target", "name"}},
                         {"SealedSecret.bitnami.com", {"spec", "template", "metadata", "name"}},
                         {"VaultStaticSecret.secrets.hashicorp.com", {"spec", "destination", "name"}},
                         {"VaultDynamicSecret.secrets.hashicorp.com", {"spec", "destination", "name"}},
                         {"VaultPKISecret.secrets.hashicorp.com", {"spec", "destination", "name"}},
                         {"OnePasswordItem.onepassword.com", {}}};

// Some such object is there. What the Secret would hold nobody here knows, and pods that run do not need it.
bool IsPromised(const fakekube::ApiServer& api, const std::string& ns, const std::string& secret) {
  for (const Maker& maker : kMakers) {
    for (const kube::ObjectRef& object : api.List(maker.kind, ns)) {
      const std::string said = maker.name.size() == 0 ? std::string() : TextOf(At(object->body, maker.name));
      if ((said.empty() ? object->meta.name : said) == secret) return true;
    }
  }
  return false;
}

class Look {
 public:
  Look(const fakekube::ApiServer& api, const std::string& ns) : api_(api), ns_(ns) {}

  // False where it is there, or may be missing. NotFound() is of the last one asked for.
  bool IsMissing(const json& in, const Reference& reference) {
    const json& of = At(in, reference.member);
    if (!of.is_object() || At(of, "optional") == true) return false;
    name_ = Text(of, reference.name);
    kind_ = reference.kind;
    // Every namespace has its API server's roots, published or not.
    if (name_ == security::kCaRootConfigMap || name_ == "kube-root-ca.crt") return false;
    if (api_.Get(reference.kind, {ns_, name_}) != nullptr) return false;
    return kind_ != "Secret" || !IsPromised(api_, ns_, name_);
  }
  bool LacksKey(const json& in, const Reference& reference) const {
    const json& of = At(in, reference.member);
    if (!of.is_object() || At(of, "optional") == true) return false;
    const kube::ObjectRef object = api_.Get(reference.kind, {ns_, Text(of, reference.name)});
    const std::string key = Text(of, "key");
    return object != nullptr && !At(object->body, "data").contains(key) &&
           !At(object->body, "binaryData").contains(key);
  }
  std::string NotFound() const {
    return fmt::format("{} \"{}\" not found", kind_ == "Secret" ? "secret" : "configmap", name_);
  }

 private:
  const fakekube::ApiServer& api_;
  const std::string& ns_;
  std::string name_;
  std::string_view kind_;
};

std::string OfVolumes(Look& look, const json& spec) {
  const auto failed = [&look](const json& volume) {
    return fmt::format("MountVolume.SetUp failed for volume \"{}\" : {}", Text(volume, "name"), look.NotFound());
  };
  for (const json& volume : Items(At(spec, "volumes"))) {
    for (const Reference& reference : kOfVolumes) {
      if (look.IsMissing(volume, reference)) return failed(volume);
    }
    for (const json& source : Items(At(volume, {"projected", "sources"}))) {
      for (const Reference& reference : kOfProjections) {
        if (look.IsMissing(source, reference)) return failed(volume);
      }
    }
  }
  return {};
}

std::string OfVariables(Look& look, const json& container, const std::string& ns) {
  for (const json& all : Items(At(container, "envFrom"))) {
    for (const Reference& reference : kOfAllVariables) {
      if (look.IsMissing(all, reference)) return "CreateContainerConfigError: " + look.NotFound();
    }
  }
  for (const json& variable : Items(At(container, "env"))) {
    const json& from = At(variable, "valueFrom");
    for (const Reference& reference : kOfVariables) {
      if (look.IsMissing(from, reference)) return "CreateContainerConfigError: " + look.NotFound();
      if (!look.LacksKey(from, reference)) continue;
      const json& of = At(from, reference.member);
      return fmt::format("CreateContainerConfigError: couldn't find key {} in {} {}/{}", Text(of, "key"),
                         reference.kind, ns, Text(of, reference.name));
    }
  }
  return {};
}

}  // namespace

std::string MissingReference(const fakekube::ApiServer& api, const kube::Object& pod) {
  Look look(api, pod.meta.ns);
  const json& spec = At(pod.body, "spec");
  if (std::string missing = OfVolumes(look, spec); !missing.empty()) return missing;
  for (const char* list : {"initContainers", "containers"}) {
    for (const json& container : Items(At(spec, list))) {
      if (std::string missing = OfVariables(look, container, pod.meta.ns); !missing.empty()) return missing;
    }
  }
  return {};
}

}  // namespace wavetank::sim
