// The access logs of cases: a case names the file "/logs/NAME", the real Envoy gets one in the run's folder.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace envoy::config::listener::v3 {
class FilterChain;
class Listener;
}  // namespace envoy::config::listener::v3

namespace wavetank::envoydiff {

// All filter chains, the default one too.
std::vector<envoy::config::listener::v3::FilterChain*> ChainsOf(envoy::config::listener::v3::Listener* listener);

bool IsCaseLog(std::string_view path);

// The listener with the files of its access logs, and of those of its connection managers and tcp_proxies, in
// `folder`. What is no listener stays as it is.
std::string MoveCaseLogs(const std::string& listener, const std::string& folder);

// Lines without what cannot be the same twice: times, durations (behind `ms`, in Envoy's and Istio's formats, in
// JSON), request ids, ports of connecting sides, bytes of connections that do not end at HTTP.
std::vector<std::string> ComparableLines(std::string_view text);

// All that MoveCaseLogs() led to `folder`, once no more comes, by the case's names.
std::map<std::string, std::vector<std::string>> ReadCaseLogs(const std::string& folder);
void RemoveCaseLogs(const std::string& folder);

}  // namespace wavetank::envoydiff
