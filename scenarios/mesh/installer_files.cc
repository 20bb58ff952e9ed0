#include "scenarios/mesh/installer_files.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "core/base/ip.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/kube/yaml.h"
#include "fakes/kube/objects/kinds.h"
#include "fmt/format.h"
#include "scenarios/mesh/istioctl.h"

namespace wavetank::scenario {
namespace {

using nlohmann::json;

bool IsKindFile(const json& document) {
  return fakekube::GroupOf(Text(document, "apiVersion")) == "kind.x-k8s.io" && Text(document, "kind") == "Cluster";
}
bool IsOperator(const json& document) {
  return fakekube::GroupOf(Text(document, "apiVersion")) == "install.istio.io" &&
         Text(document, "kind") == "IstioOperator";
}
fakekube::OtherDocuments OfInstallers() {
  return {[](const json& document) { return IsKindFile(document) || IsOperator(document); }, {}};
}

// The first part of "10.244.0.0/16,fd00:10:244::/56".
std::string FirstRange(const std::string& text) { return text.substr(0, text.find(',')); }

// [first, end) of an IPv4 CIDR or of "from-to"; InvalidArgument: it is neither.
absl::StatusOr<std::pair<uint64_t, uint64_t>> Bounds(const std::string& text) {
  const auto bad = [&] {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is no range of IPv4 addresses; write one as 10.10.0.0/16", text));
  };
  const auto address = [](const std::string& part) -> std::optional<uint64_t> {
    const absl::StatusOr<IpAddress> ip = IpAddress::Parse(part);
    if (!ip.ok() || !ip->is_v4()) return std::nullopt;
    return ip->low();
  };
  if (const size_t dash = text.find('-'); dash != std::string::npos) {
    const auto from = address(text.substr(0, dash)), to = address(text.substr(dash + 1));
    if (!from || !to || *to < *from) return bad();
    return std::pair(*from, *to + 1);
  }
  const size_t slash = text.find('/');
  int bits = 0;
  const auto ip = address(text.substr(0, slash));
  if (slash == std::string::npos || !ip || !absl::SimpleAtoi(text.substr(slash + 1), &bits) || bits < 1 || bits > 32) {
    return bad();
  }
  const uint64_t size = uint64_t{1} << (32 - bits);
  return std::pair(*ip & ~(size - 1), (*ip & ~(size - 1)) + size);
}

std::string Trimmed(std::string text) {
  std::erase(text, ' ');
  return text;
}

bool IsMetalLbPool(const json& object) {
  return fakekube::GroupOf(Text(object, "apiVersion")) == "metallb.io" && Text(object, "kind") == "IPAddressPool";
}

// Where MetalLB is: its controller reads the pools of its own namespace alone (metallb: controller/main.go,
// --namespace). That of a Deployment of its, or the one of its manifests.
std::string MetalLbNamespace(const json& object, const std::string& otherwise) {
  const json& meta = At(object, "metadata");
  const json& labels = At(meta, "labels");
  const bool is = Text(object, "kind") == "Deployment" &&
                  ((Text(labels, "app") == "metallb" && Text(labels, "component") == "controller") ||
                   (Text(labels, "app.kubernetes.io/name") == "metallb" &&
                    Text(labels, "app.kubernetes.io/component") == "controller"));
  return is ? Text(meta, "namespace", otherwise) : otherwise;
}

// A CIDR's network and broadcast addresses are given away like all others, unless the pool avoids buggy ones (metallb:
// internal/allocator/allocator.go, getFreeIPsFromPool).
std::string WholeRange(const std::string& range, bool avoid_buggy) {
  const auto bounds = Bounds(range);
  if (!bounds.ok() || avoid_buggy || range.find('/') == std::string::npos) return range;
  const auto text = [](uint64_t address) { return IpAddress::V4(static_cast<uint32_t>(address)).ToString(); };
  return fmt::format("{}-{}", text(bounds->first), text(bounds->second - 1));
}

// What MetalLB may give away, in order: of pools that it takes addresses from by itself.
std::vector<std::string> PoolAddresses(const json& object) {
  std::vector<std::string> out;
  const auto add = [&](const json& pool, const char* automatic) {
    if (At(pool, automatic) == false) return;
    for (const json& range : Items(At(pool, "addresses"))) {
      const bool avoid_buggy = At(pool, "avoidBuggyIPs") == true || At(pool, "avoid-buggy-ips") == true;
      out.push_back(WholeRange(Trimmed(TextOf(range)), avoid_buggy));
    }
  };
  if (IsMetalLbPool(object)) add(At(object, "spec"), "autoAssign");
  const json& meta = At(object, "metadata");
  if (Text(object, "kind") == "ConfigMap" && Text(meta, "namespace") == "metallb-system" &&
      Text(meta, "name") == "config") {
    const absl::StatusOr<json> config = kube::ParseYaml(Text(At(object, "data"), "config"), "config");
    if (config.ok()) {
      for (const json& pool : Items(At(*config, "address-pools"))) add(pool, "auto-assign");
    }
  }
  return out;
}

}  // namespace

absl::StatusOr<std::vector<fakekube::Manifest>> LoadRendered(const std::string& path, std::vector<std::string>* notes) {
  fakekube::OtherDocuments others = OfInstallers();
  absl::StatusOr<std::vector<fakekube::Manifest>> out = fakekube::LoadManifests(path, &others);
  if (!out.ok()) return out;
  for (const fakekube::Manifest& other : others.found) {
    if (!IsOperator(other.object)) continue;
    const auto at = [&](const absl::Status& why) {
      return absl::Status(why.code(), fmt::format("{}:{}: an IstioOperator: {}", other.file, other.line, Message(why)));
    };
    const absl::StatusOr<std::string> istioctl = FindIstioctl();
    if (!istioctl.ok()) {
      return at(absl::FailedPreconditionError(
          fmt::format("it is rendered by istioctl, and {}; install istioctl 1.18.2, or put what `istioctl manifest "
                      "generate -f {}` prints in its place",
                      Message(istioctl.status()), other.file)));
    }
    const absl::StatusOr<Rendered> text = GenerateManifests(*istioctl, JsonText(other.object));
    if (!text.ok()) return at(text.status());
    if (notes != nullptr) {
      for (const std::string& warning : text->warnings)
        notes->push_back(fmt::format("{}:{}: an IstioOperator: istioctl says: {}", other.file, other.line, warning));
    }
    absl::StatusOr<std::vector<fakekube::Manifest>> rendered =
        fakekube::ParseManifests(fmt::format("{} (rendered by istioctl)", other.file), text->manifests);
    if (!rendered.ok()) return rendered;
    for (fakekube::Manifest& manifest : *rendered) out->push_back(std::move(manifest));
  }
  return out;
}

absl::StatusOr<ClusterRanges> ReadRanges(const ClusterSpec& cluster) {
  ClusterRanges out;
  std::vector<std::string> pools;
  std::vector<std::tuple<json, std::string, std::string>> pool_objects;  // with namespace, and where they stand
  std::string metal_lb = "metallb-system";
  const auto look_at = [&](const json& object, const std::string& given, const std::string& where) {
    metal_lb = MetalLbNamespace(object, metal_lb);
    if (IsMetalLbPool(object)) {
      const std::string ns = Text(At(object, "metadata"), "namespace", given.empty() ? "default" : given.c_str());
      pool_objects.emplace_back(object, ns, where);
      return;
    }
    for (std::string& range : PoolAddresses(object)) pools.push_back(std::move(range));
  };
  for (const ManifestSpec& spec : cluster.manifests) {
    if (!spec.objects.is_null()) {
      for (const json& object : Items(spec.objects))
        look_at(object, spec.ns, fmt::format("{}:{}", spec.file, spec.line));
      continue;
    }
    if (!fakekube::AnyMentions(spec.path, {"kind.x-k8s.io", "metallb"})) continue;  // and is a whole cluster, perhaps
    fakekube::OtherDocuments others = OfInstallers();
    const absl::StatusOr<std::vector<fakekube::Manifest>> manifests = fakekube::LoadManifests(spec.path, &others);
    if (!manifests.ok()) return manifests.status();
    for (const fakekube::Manifest& manifest : *manifests)
      look_at(manifest.object, spec.ns, fmt::format("{}:{}", manifest.file, manifest.line));
    for (const fakekube::Manifest& other : others.found) {
      if (!IsKindFile(other.object)) continue;
      const json& networking = At(other.object, "networking");
      const std::string family = Text(networking, "ipFamily", "ipv4");
      if (family == "ipv6") {
        return absl::InvalidArgumentError(fmt::format(
            "{}:{}: ipFamily ipv6 is not read from a kind file; say pods and services of the cluster in a scenario",
            other.file, other.line));
      }
      if (family != "ipv4" && family != "dual")
        return absl::InvalidArgumentError(
            fmt::format("{}:{}: invalid ipFamily: {}; kind knows ipv4, ipv6 and dual", other.file, other.line, family));
      // kind: pkg/internal/apis/config/default.go.
      const bool dual = family == "dual";
      out.pods = Trimmed(Text(networking, "podSubnet", dual ? "10.244.0.0/16,fd00:10:244::/56" : "10.244.0.0/16"));
      out.services =
          Trimmed(Text(networking, "serviceSubnet", dual ? "10.96.0.0/16,fd00:10:96::/112" : "10.96.0.0/16"));
      for (std::string* range : {&out.pods, &out.services}) {
        // kind: pkg/internal/apis/config/validate.go, validateSubnets.
        if (const auto count = 1 + std::count(range->begin(), range->end(), ','); count != (dual ? 2 : 1)) {
          return absl::InvalidArgumentError(fmt::format("{}:{}: expected {} in '{}', as ipFamily is {}", other.file,
                                                        other.line, dual ? "two ranges" : "one range", *range, family));
        }
        if (const auto bounds = Bounds(FirstRange(*range)); !bounds.ok()) {
          return absl::InvalidArgumentError(fmt::format("{}:{}: {}", other.file, other.line, Message(bounds.status())));
        }
      }
      if (const size_t nodes = Items(At(other.object, "nodes")).size(); nodes > 1) {
        out.notes.push_back(
            fmt::format("{}:{}: {} nodes are asked for, and the cluster has one", other.file, other.line, nodes));
      }
    }
  }
  bool pending = false;  // MetalLB is there, and has nothing that it gives by itself
  for (const auto& [pool, ns, where] : pool_objects) {
    std::vector<std::string> ranges = PoolAddresses(pool);
    if (ns != metal_lb) {
      out.notes.push_back(fmt::format("{}: IPAddressPool {} is in namespace {}, and MetalLB reads those of {} alone",
                                      where, Text(At(pool, "metadata"), "name"), ns, metal_lb));
      ranges.clear();
    }
    pending = pending || ranges.empty();
    pools.insert(pools.end(), ranges.begin(), ranges.end());
  }
  const auto v6 = [](const std::string& range) { return range.find(':') != std::string::npos; };
  for (const std::string& range : pools) {
    if (v6(range))
      out.notes.push_back(
          fmt::format("MetalLB's range {} is left out: load balancers have IPv4 addresses here", range));
  }
  std::erase_if(pools, v6);
  for (const std::string& range : pools) {
    if (const auto bounds = Bounds(range); !bounds.ok())
      return absl::InvalidArgumentError(fmt::format("a pool of MetalLB: {}", Message(bounds.status())));
  }
  if (!pools.empty()) {
    out.load_balancers = pools.front();
  } else if (pending) {
    out.load_balancers = "none";
  }
  if (pools.size() > 1) {
    out.notes.push_back(
        fmt::format("of MetalLB's {} ranges the first, {}, is given to load balancers", pools.size(), pools.front()));
  }
  return out;
}

bool SameRange(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto one = Bounds(a), other = Bounds(b);
  return one.ok() && other.ok() && *one == *other;
}

std::vector<std::string> SharedRanges(const Scenario& scenario) {
  std::vector<std::string> out;
  for (size_t i = 0; i < scenario.clusters.size(); ++i) {
    for (size_t j = i + 1; j < scenario.clusters.size(); ++j) {
      const ClusterSpec &a = scenario.clusters[i], &b = scenario.clusters[j];
      const auto first = Bounds(a.load_balancer_cidr), second = Bounds(b.load_balancer_cidr);
      if (first.ok() && second.ok() && second->first < first->second && first->first < second->second) {
        out.push_back(fmt::format(
            "the ranges of load balancers of {0} and {1} overlap ({2}, {3}): at an address that both give away each "
            "one's pods reach their own cluster, and all others {0}; give each a range of its own",
            a.name, b.name, a.load_balancer_cidr, b.load_balancer_cidr));
      }
      // Of two IP families that of IPv4, which stands first.
      const auto one = Bounds(a.pod_cidr.substr(0, a.pod_cidr.find(','))),
                 other = Bounds(b.pod_cidr.substr(0, b.pod_cidr.find(',')));
      if (a.network != b.network || !one.ok() || !other.ok()) continue;
      if (one->second <= other->first || other->second <= one->first) continue;
      out.push_back(fmt::format(
          "{} and {} are on one network, and their pods' ranges overlap ({}, {}): what one sends to a pod of the other "
          "in there stays with its own; give each a range of its own, or a network",
          a.name, b.name, a.pod_cidr, b.pod_cidr));
    }
  }
  return out;
}

}  // namespace wavetank::scenario
