// SPDX-License-Identifier: Apache-2.0
// Schedules for the eye: render_text<S>(size) and render_svg<S>(size). For tools, tests and docs;
// nothing on the path of a collective includes this.
#pragma once

#include "collx/schedule/render/svg.hpp"
#include "collx/schedule/render/text.hpp"
