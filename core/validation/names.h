// Checks of single values; each gives what is wrong, or nothing. O(text).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/validation/problems.h"
#include "nlohmann/json.hpp"

namespace wavetank::validation {

using nlohmann::json;

bool IsDnsLabel(std::string_view text);  // RFC 1123, at most 63
std::string WildcardDomain(const std::string& domain);
std::string Fqdn(const std::string& domain);
std::string PortNumber(int64_t port);
std::string IpSubnet(const std::string& subnet);
bool IsIp(const std::string& text);
// Go's strconv.Quote of plain text.
std::string Quoted(std::string_view text);
// "1h30m", "0.5s" of a field; at least a millisecond (istiod: ValidateDuration).
std::string DurationText(const json& duration);
std::string Percent(int64_t value);

// Names of headers that a route adds, sets or removes.
enum class HeaderUse { kRequest, kDestination, kOther };
void Headers(const json& headers, HeaderUse request, Problems& out);
std::string HeaderName(const std::string& name);

// A StringMatch with a regex.
std::string Regex(const json& match, const std::string& where);
void GatewayNames(const json& names, Problems& out);
void ExportTo(const std::string& ns, const json& export_to, bool rule_with_selector, Problems& out);
void LabelMap(const json& labels, Problems& out);

// Members in lowerCamelCase or as protobuf spells them.
const json& Member(const json& in, std::string_view camel);
std::string MemberText(const json& in, std::string_view camel);
int64_t MemberNumber(const json& in, std::string_view camel);  // also of quoted numbers

}  // namespace wavetank::validation
