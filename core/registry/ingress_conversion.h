// Kubernetes' Ingresses as Gateways and VirtualServices (istiod: pilot/pkg/config/kube/ingress/conversion.go).
//
// Known oddities of 1.18.2: a default backend has no effect; the rules of all Ingresses for one host end in the
// VirtualService of the oldest, which names that one's Gateway alone; a path whose Service port is named stays out
// until that Service is there.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "core/config/kinds/gateway.h"
#include "core/config/kinds/virtual_service.h"
#include "core/config/mesh/mesh_config.h"

namespace wavetank::config {

// Where Gateways made of Ingresses stand, and the ingress Service (K8S_INGRESS_NS).
inline constexpr char kIngressNamespace[] = "istio-system";

// ingressControllerMode; kUnspecified processes nothing.
enum class IngressMode : uint8_t { kUnspecified, kOff, kDefault, kStrict };
IngressMode IngressModeOf(const MeshConfig& mesh);

// Whether istiod is the controller of an Ingress: by its annotation, its class, or neither. `ingress_class`: the one
// that it names, or null.
bool IsOwnIngress(const MeshConfig& mesh, const kube::Object& ingress, const kube::Object* ingress_class);

// Labels of the pods that serve Ingresses.
Labels IngressGatewaySelector(const MeshConfig& mesh);

GatewayRef GatewayOfIngress(const kube::Object& ingress, const MeshConfig& mesh);

// The number of a Service's port by its name; nothing: there is none.
using NamedPort =
    std::function<std::optional<int64_t>(const std::string& ns, const std::string& service, const std::string& port)>;
// Adds the rules of one more Ingress to the VirtualServices by their host. `names_all_hosts`: that of no host is called
// by "*" (istiod: conversion.go, ConvertIngressVirtualService; since 1.27 virtualservices.go, VirtualServices).
void AddRulesOfIngress(const kube::Object& ingress, const std::string& domain_suffix, bool names_all_hosts,
                       const NamedPort& named_port, std::map<std::string, TypedConfig<VirtualService>>* by_host);

}  // namespace wavetank::config
