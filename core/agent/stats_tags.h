// What of a statistic's name becomes a tag in a proxy of Istio's.
#pragma once

namespace wavetank::agent {

// The regular expression's first group is cut from the name, its second (else the first) is the value.
struct StatsTag {
  const char* name;
  const char* regex;
};

// Patterns of names that become tags, in the template's order; what a tag is cut from stays in Envoy's statistics under
// its full name.
inline constexpr StatsTag kStatsTags[] = {
    {"cluster_name", R"(^cluster\.((.+?(\..+?\.svc\.cluster\.local)?)\.))"},
    {"tcp_prefix", R"(^tcp\.((.*?)\.)\w+?$)"},
    {"response_code", R"(_rq(_(\d{3}))$)"},
    {"response_code_class", R"(_rq(_(\dxx))$)"},
    {"http_conn_manager_listener_prefix",
     R"(^listener(?=\.).*?\.http\.(((?:[_.[:digit:]]*|[_\[\]aAbBcCdDeEfF[:digit:]]*))\.))"},
    {"http_conn_manager_prefix", R"(^http\.(((?:[_.[:digit:]]*|[_\[\]aAbBcCdDeEfF[:digit:]]*))\.))"},
    {"listener_address", R"(^listener\.(((?:[_.[:digit:]]*|[_\[\]aAbBcCdDeEfF[:digit:]]*))\.))"},
    {"mongo_prefix", R"(^mongo\.(.+?)\.(collection|cmd|cx_|op_|delays_|decoding_)(.*?)$)"},
};
// Behind those that a user adds (extraStatTags).
inline constexpr StatsTag kStatsTagsAfterExtra[] = {
    {"cache", R"((cache\.(.+?)\.))"},
    {"component", R"((component\.(.+?)\.))"},
    {"tag", R"((tag\.(.+?);\.))"},
    {"wasm_filter", R"((wasm_filter\.(.+?)\.))"},
    {"authz_enforce_result", R"(rbac(\.(allowed|denied)))"},
    {"authz_dry_run_action", R"((\.istio_dry_run_(allow|deny)_))"},
    {"authz_dry_run_result", R"((\.shadow_(allowed|denied)))"},
};

}  // namespace wavetank::agent
