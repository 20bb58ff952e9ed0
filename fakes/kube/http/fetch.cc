#include "fakes/kube/http/fetch.h"

#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <string_view>

namespace wavetank::fakekube::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace bhttp = boost::beast::http;

absl::StatusOr<std::string> Fetch(const std::string& server, const std::string& path, Duration timeout) {
  constexpr std::string_view kScheme = "http://";
  const size_t colon = server.rfind(':');
  if (!server.starts_with(kScheme) || colon == std::string::npos || colon < kScheme.size())
    return absl::InvalidArgumentError(fmt::format("'{}' is no http://HOST:PORT", server));
  const std::string host = server.substr(kScheme.size(), colon - kScheme.size()), port = server.substr(colon + 1);
  asio::io_context io;
  asio::ip::tcp::resolver resolver(io);
  beast::tcp_stream stream(io);
  bhttp::request<bhttp::empty_body> request(bhttp::verb::get, path, 11);
  request.set(bhttp::field::host, host);
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
  if (response.result_int() != 200)
    return absl::FailedPreconditionError(fmt::format("{}{} answers {}", server, path, response.result_int()));
  return response.body();
}

}  // namespace wavetank::fakekube::http
