// A mesh of a value, field by field.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "wavetank/mesh.h"

namespace wavetank {
namespace {

using Field = std::function<bool(const Value&)>;
using Fields = std::map<std::string, Field, std::less<>>;

Field Into(std::string* out) {
  return [out](const Value& v) { return v.IsText() && (*out = v.Text(), true); };
}
// 0 to a hundred thousand.
Field Into(int* out) {
  return [out](const Value& v) {
    const int64_t given = v.Integer();
    *out = static_cast<int>(given);
    return given >= 0 && given <= 100'000 && v.Print() == std::to_string(given);
  };
}
// 0 to what fits into 63 bits.
Field Into(uint64_t* out) {
  return [out](const Value& v) {
    *out = static_cast<uint64_t>(v.Integer());
    return v.Integer() >= 0 && v.Print() == std::to_string(*out);
  };
}
Field Into(std::vector<std::string>* out) {
  return [out](const Value& v) {
    for (const Value& item : v.Items()) out->push_back(item.Text());
    return v.IsList() && std::all_of(v.Items().begin(), v.Items().end(), [](const Value& i) { return i.IsText(); });
  };
}

// Empty: all is well; or what is not.
std::string Read(const Value& value, const std::string& where, const Fields& fields) {
  if (!value.IsMap()) return where + " is no mapping";
  for (const auto& [name, field] : value.Entries()) {
    const auto known = fields.find(name);
    if (known == fields.end()) {
      std::string names;
      for (const auto& [each, unused] : fields) names += (names.empty() ? "" : ", ") + each;
      return where + " has no field '" + name + "'; it has " + names;
    }
    if (!field.IsNull() && !known->second(field)) return where + "." + name + " is of another type, or out of range";
  }
  return {};
}

template <class T>
Field Each(std::vector<T>* out, std::string* error, const std::string& where,
           const std::function<Fields(T&, const std::string&)>& fields) {
  return [=](const Value& value) {
    for (size_t i = 0; i < value.Items().size() && error->empty(); ++i) {
      const std::string here = where + "[" + std::to_string(i) + "]";
      out->emplace_back();
      *error = Read(value.Items()[i], here, fields(out->back(), here));
    }
    return value.IsList();
  };
}

Field GatewayInto(Gateway* out) {
  return [out](const Value& value) {
    static const std::map<std::string, Gateway> kNames = {{"load-balancer", Gateway::kLoadBalancer},
                                                          {"load-balancer-hostname", Gateway::kLoadBalancerHostname},
                                                          {"node-port", Gateway::kNodePort},
                                                          {"none", Gateway::kNone}};
    const auto it = kNames.find(value.Text());
    if (it != kNames.end()) *out = it->second;
    return it != kNames.end();
  };
}

}  // namespace

Result<Mesh> Mesh::FromValue(const Value& value) {
  Mesh out;
  std::string error;
  const auto node = [](Node& n, const std::string&) {
    return Fields{{"name", Into(&n.name)}, {"region", Into(&n.region)}, {"zone", Into(&n.zone)}};
  };
  const auto cluster = [&](Cluster& c, const std::string& where) {
    return Fields{{"name", Into(&c.name)},
                  {"network", Into(&c.network)},
                  {"control_plane", Into(&c.control_plane)},
                  {"istiods", Into(&c.istiods)},
                  {"gateway", GatewayInto(&c.gateway)},
                  {"gateways", Into(&c.gateways)},
                  {"nodes", Each<Node>(&c.nodes, &error, where + ".nodes", node)}};
  };
  const auto deployment = [](Deployment& d, const std::string&) {
    return Fields{{"cluster", Into(&d.cluster)},
                  {"version", Into(&d.version)},
                  {"replicas", Into(&d.replicas)},
                  {"name", Into(&d.name)}};
  };
  const auto app = [&](App& a, const std::string& where) {
    return Fields{{"name", Into(&a.name)},
                  {"ns", Into(&a.ns)},
                  {"port", Into(&a.port)},
                  {"port_name", Into(&a.port_name)},
                  {"also_in", Into(&a.also_in)},
                  {"deployments", Each<Deployment>(&a.deployments, &error, where + ".deployments", deployment)}};
  };
  const auto object = [](Object& o, const std::string&) {
    return Fields{{"cluster", Into(&o.cluster)},
                  {"object", [&o](const Value& v) { return v.IsMap() && (o.object = v, true); }}};
  };
  std::string scenario;
  const std::string wrong = Read(value, "mesh",
                                 {{"clusters", Each<Cluster>(&out.clusters, &error, "mesh.clusters", cluster)},
                                  {"apps", Each<App>(&out.apps, &error, "mesh.apps", app)},
                                  {"objects", Each<Object>(&out.objects, &error, "mesh.objects", object)},
                                  {"seed", Into(&out.seed)},
                                  {"profile", Into(&out.profile)},
                                  {"scenario", Into(&scenario)}});
  if (!error.empty() || !wrong.empty()) return Error{error.empty() ? wrong : error};
  if (!scenario.empty()) return Error{"mesh.scenario: name it as the request's 'scenario' instead"};
  if (const Status named = out.Check(); !named.ok()) return Error{named.error()};
  return out;
}

Status Mesh::Check() const {
  const auto unknown = [this](const std::string& where, const std::string& name) -> std::string {
    std::string names;
    for (const Cluster& cluster : clusters) {
      if (cluster.name == name) return {};
      names += (names.empty() ? "" : ", ") + cluster.name;
    }
    return where + ": no cluster is named '" + name + "'; there are: " + names;
  };
  const auto at = [](const char* list, size_t i) { return std::string(list) + "[" + std::to_string(i) + "]"; };
  std::vector<std::string> wrong;
  // Of two objects of one name the later would replace the one before, and a part of the mesh were gone without a word.
  std::map<std::string, std::string> taken;  // by kind, cluster and name: who has it
  for (const Cluster& cluster : clusters) {
    for (const char* kind : {"Service", "Deployment"})
      taken[std::string(kind) + " sample/sleep in " + cluster.name] = "each cluster's client";
  }
  const auto take = [&](const std::string& what, const std::string& who) {
    const auto [owner, is_new] = taken.try_emplace(what, who);
    if (!is_new) wrong.push_back(who + ": " + what + " is that of " + owner->second + " already; take another name");
  };
  for (size_t i = 0; i < apps.size(); ++i) {
    const std::string app = at("mesh.apps", i), name = apps[i].ns + "/" + apps[i].name;
    std::set<std::string> services(apps[i].also_in.begin(), apps[i].also_in.end());
    for (size_t k = 0; k < apps[i].deployments.size(); ++k) {
      const Deployment& d = apps[i].deployments[k];
      const std::string where = app + at(".deployments", k);
      wrong.push_back(unknown(where + ".cluster", d.cluster));
      const std::string object = d.name.empty() ? apps[i].name + "-" + d.version : d.name;
      take("Deployment " + apps[i].ns + "/" + object + " in " + d.cluster, where);
      services.insert(d.cluster);
    }
    for (const std::string& cluster : services) take("Service " + name + " in " + cluster, app);
    for (size_t k = 0; k < apps[i].also_in.size(); ++k)
      wrong.push_back(unknown(app + at(".also_in", k), apps[i].also_in[k]));
  }
  for (size_t i = 0; i < objects.size(); ++i)
    wrong.push_back(unknown(at("mesh.objects", i) + ".cluster", objects[i].cluster));
  for (const std::string& each : wrong)
    if (!each.empty()) return Error{each};
  return Nothing{};
}

}  // namespace wavetank
