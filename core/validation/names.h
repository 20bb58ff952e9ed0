// Checks of single values; each gives what is wrong, or nothing. O(text).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "core/config/schema/protocol.h"
#include "core/validation/go_text.h"
#include "core/validation/problems.h"
#include "nlohmann/json.hpp"

namespace wavetank::validation {

using nlohmann::json;

bool IsDnsLabel(std::string_view text);  // RFC 1123, at most 63
std::string WildcardDomain(const std::string& domain);
// A '*' elsewhere than alone or before the first dot.
std::string PartialWildcard(const std::string& host);
std::string Fqdn(const std::string& domain);
std::string PortNumber(int64_t port);
std::string PortName(const std::string& name);
// As configuration may name it: HBONE is none's to name.
pilot::Protocol ProtocolOf(const std::string& name);
// "" is sniffed.
std::string ProtocolName(const std::string& protocol);
std::string IpSubnet(const std::string& subnet);
std::string Ip(const std::string& address);
bool IsIp(const std::string& text);
// The path behind "unix://".
std::string UnixAddress(std::string_view path);
// "1h30m", "0.5s" of a field; at least a millisecond (istiod: ValidateDuration).
std::string DurationText(const json& duration);
std::string Percent(int64_t value);

// Names of headers that a route adds, sets or removes, and their values.
enum class HeaderUse { kRequest, kDestination, kOther };
void Headers(const json& headers, HeaderUse request, Problems& out);
std::string HeaderName(const std::string& name);
// With Envoy's variables (istiod: header_value_validator.go).
std::string HeaderValue(const std::string& value);
bool IsAuthorityHeader(const std::string& name);

// A StringMatch with a regex.
std::string Regex(const json& match, const std::string& where);
void GatewayNames(const json& names, Problems& out);

// Whose exportTo it is: a ServiceEntry may be exported to nobody ("~"), a rule for some workloads to its namespace.
enum class Exported { kAny, kServiceEntry, kRuleWithSelector };
void ExportTo(const std::string& ns, const json& export_to, Exported what, Problems& out);
void LabelMap(const json& labels, Problems& out);

// A selector by `field` of it: "labels" of the older kinds, "matchLabels" of the newer ones. Without any, what is
// warned of stands between `before` and `after`.
void Selector(const json& selector, std::string_view field, const std::string& before, const std::string& after,
              Problems& out);
// "ns/host" of a Sidecar, also "host" alone of a Gateway (istiod: validateNamespaceSlashWildcardHostname).
void HostInNamespace(const std::string& text, bool gateway, Problems& out);
// A ServerTLSSettings.
void ServerTls(const json& tls, Problems& out);
enum class ServerTlsMode { kPassthrough, kSimple, kMutual, kAutoPassthrough, kIstioMutual, kOptionalMutual };
ServerTlsMode ModeOf(const json& tls);
std::string_view ModeName(ServerTlsMode mode);
// A Destination of a route or of a Sidecar's egressProxy; null is none.
void Destination(const json& destination, Problems& out);

// Members in lowerCamelCase or as protobuf spells them.
const json& Member(const json& in, std::string_view camel);
std::string MemberText(const json& in, std::string_view camel);
int64_t MemberNumber(const json& in, std::string_view camel);  // also of quoted numbers
double MemberDouble(const json& in, std::string_view camel);
// An enumeration by name or number; 0 if it is not there, -1 if the name is none of these.
int MemberEnum(const json& in, std::string_view camel, absl::Span<const std::string_view> names);
// The members of a mapping; of anything else none.
const json& Mapping(const json& in);
bool Has(const json& in, std::string_view camel);

}  // namespace wavetank::validation
