// What istiod's environment changes about what it generates.
#pragma once

#include <optional>

#include "core/base/time.h"

namespace wavetank::pilot {

// By variable, each with its default in 1.18 (core/settings/istiod_variables.tsv says what it does).
// istiod: pilot/pkg/features/pilot.go
struct Features {
  bool alpn_filter = true;                    // PILOT_ENABLE_ALPN_FILTER
  bool auto_mtls_checks = true;               // ENABLE_AUTO_MTLS_CHECK_POLICIES
  bool cds_cache = true;                      // PILOT_ENABLE_CDS_CACHE
  bool eds_for_headless = false;              // PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES
  bool entries_across_clusters = true;        // PILOT_ENABLE_CROSS_CLUSTER_WORKLOAD_ENTRY
  bool entries_select_pods = true;            // PILOT_ENABLE_SERVICEENTRY_SELECT_PODS
  bool filters_gateway_clusters = false;      // PILOT_FILTER_GATEWAY_CLUSTER_CONFIG
  bool gateway_api = true;                    // PILOT_ENABLE_GATEWAY_API
  bool gateway_api_deployments = true;        // PILOT_ENABLE_GATEWAY_API_DEPLOYMENT_CONTROLLER
  bool gateway_api_status = true;             // PILOT_ENABLE_GATEWAY_API_STATUS
  bool gateways_by_namespace = false;         // PILOT_SCOPE_GATEWAY_TO_NAMESPACE
  bool headless_across_clusters = true;       // ENABLE_MULTICLUSTER_HEADLESS
  bool headless_listeners = true;             // PILOT_ENABLE_HEADLESS_SERVICE_POD_LISTENERS
  bool http10 = false;                        // PILOT_HTTP10
  bool ignores_ports = true;                  // SIDECAR_IGNORE_PORT_IN_HOST_MATCH
  bool inbound_passthrough = true;            // PILOT_ENABLE_INBOUND_PASSTHROUGH
  bool istio_tags = true;                     // PILOT_ENABLE_ISTIO_TAGS
  bool legacy_auto_passthrough = false;       // PILOT_ENABLE_LEGACY_AUTO_PASSTHROUGH
  bool mongo_filter = true;                   // PILOT_ENABLE_MONGO_FILTER
  bool mysql_filter = false;                  // PILOT_ENABLE_MYSQL_FILTER
  bool partial_full_pushes = true;            // PILOT_PARTIAL_FULL_PUSHES
  bool rds_cache = true;                      // PILOT_ENABLE_RDS_CACHE
  bool round_robin = false;                   // ENABLE_LEGACY_LB_ALGORITHM_DEFAULT
  bool route_collapse = true;                 // PILOT_ENABLE_ROUTE_COLLAPSE_OPTIMIZATION
  bool services_select_entries = true;        // PILOT_ENABLE_K8S_SELECT_WORKLOAD_ENTRIES
  bool sidecar_remote_address = false;        // PILOT_SIDECAR_USE_REMOTE_ADDRESS
  bool sniffs_inbound = true;                 // PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_INBOUND
  bool sniffs_outbound = true;                // PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_OUTBOUND
  bool validates_trust_domains = true;        // not PILOT_SKIP_VALIDATE_TRUST_DOMAIN
  bool verifies_sds_certificates = true;      // VERIFY_SDS_CERTIFICATE
  bool xds_identity_check = true;             // PILOT_ENABLE_XDS_IDENTITY_CHECK
  std::optional<Duration> inbound_detection;  // PILOT_INBOUND_PROTOCOL_DETECTION_TIMEOUT
  double trace_sampling = 1;                  // PILOT_TRACE_SAMPLING, per cent
  Duration request_timeout{};                 // ISTIO_DEFAULT_REQUEST_TIMEOUT
  // Where the release has them (Change::kDnsJitter, kDnsQueriesPerPort).
  Duration dns_jitter = 100ms;         // PILOT_DNS_JITTER_DURATION
  int64_t dns_queries_per_port = 100;  // PILOT_DNS_CARES_UDP_MAX_QUERIES

  friend bool operator==(const Features&, const Features&) = default;
};

}  // namespace wavetank::pilot
