#include "fakes/kube/http/transport/fetch.h"

#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <string_view>

namespace wavetank::fakekube::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace bhttp = boost::beast::http;

absl::StatusOr<Answer> Send(const Outgoing& call, Duration timeout) {
  const std::string& server = call.server;
  constexpr std::string_view kScheme = "http://";
  const size_t colon = server.rfind(':');
  if (!server.starts_with(kScheme) || colon == std::string::npos || colon < kScheme.size())
    return absl::InvalidArgumentError(fmt::format("'{}' is no http://HOST:PORT", server));
  const std::string host = server.substr(kScheme.size(), colon - kScheme.size()), port = server.substr(colon + 1);
  asio::io_context io;
  asio::ip::tcp::resolver resolver(io);
  beast::tcp_stream stream(io);
  const bhttp::verb verb = bhttp::string_to_verb(call.method);
  if (verb == bhttp::verb::unknown) return absl::InvalidArgumentError(fmt::format("no method '{}'", call.method));
  bhttp::request<bhttp::string_body> request(verb, call.path, 11);
  request.set(bhttp::field::host, host);
  if (!call.content_type.empty()) request.set(bhttp::field::content_type, call.content_type);
  if (!call.token.empty()) request.set(bhttp::field::authorization, "Bearer " + call.token);
  request.body() = call.body;
  request.prepare_payload();
  bhttp::response<bhttp::string_body> response;
  beast::flat_buffer buffer;
  // Deadlines work only for what is asynchronous.
  boost::system::error_code failed = asio::error::timed_out;
  stream.expires_after(std::chrono::nanoseconds(timeout.count()));
  resolver.async_resolve(host, port, [&](boost::system::error_code error, const auto& found) {
    if ((failed = error)) return;
    stream.async_connect(found, [&](boost::system::error_code refused, const auto&) {
      if ((failed = refused)) return;
      bhttp::async_write(stream, request, [&](boost::system::error_code broken, size_t) {
        if ((failed = broken)) return;
        bhttp::async_read(stream, buffer, response, [&](boost::system::error_code end, size_t) { failed = end; });
      });
    });
  });
  io.run_for(std::chrono::nanoseconds(2 * timeout.count()));
  if (failed) return absl::UnavailableError(fmt::format("{} does not answer: {}", server, failed.message()));
  return Answer{static_cast<int>(response.result_int()), response.body()};
}

absl::StatusOr<std::string> Fetch(const std::string& server, const std::string& path, Duration timeout) {
  absl::StatusOr<Answer> answer = Send({server, "GET", path, "", "", ""}, timeout);
  if (!answer.ok()) return answer.status();
  if (answer->status != 200)
    return absl::FailedPreconditionError(fmt::format("{}{} answers {}", server, path, answer->status));
  return std::move(answer->body);
}

}  // namespace wavetank::fakekube::http
