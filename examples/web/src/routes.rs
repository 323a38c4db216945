//! The routes.

use axum::{
    Json, Router,
    extract::{MatchedPath, Path, Query, Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use entable::{Cursor, ETag, prelude::*};
use serde::{Deserialize, Serialize};
use tracing::{Instrument, field};

use crate::{
    employee::{Employee, Shown, Written},
    etag::{self, Expected},
    problem::Problem,
};

/// Returns the service over a store.
pub fn app(client: &Client) -> Router {
    let one = get(read).put(write).delete(remove);
    Router::new()
        .route("/departments/{department}/employees", get(list))
        .route("/departments/{department}/employees/{id}", one)
        .layer(middleware::from_fn(trace))
        .with_state(client.table::<Employee>())
}

type Staff = State<Table<Employee>>;
type At = Path<(String, u32)>;

fn point(department: &str, id: u32) -> Point<Employee> {
    Employee::primary().department(department).id(id)
}

#[derive(Debug, Deserialize)]
struct PageOf {
    after: Option<String>,
    size: Option<u32>,
}

#[derive(Debug, Serialize)]
struct Listed {
    employees: Vec<Shown>,
    /// The next page's `after`; none on the last page.
    next: Option<String>,
}

async fn list(
    State(staff): Staff,
    Path(department): Path<String>,
    Query(PageOf { after, size }): Query<PageOf>,
) -> Result<Json<Listed>, Problem> {
    let after: Option<Cursor> = after.map(|text| text.parse()).transpose()?;
    let query = staff.query(Employee::primary().department(department));
    let page = query.page_size(size.unwrap_or(50).clamp(1, 1_000)).page(after).await?;
    let employees = page.items.into_iter().map(Shown::from).collect();
    Ok(Json(Listed { employees, next: page.next.map(|cursor| cursor.to_string()) }))
}

async fn read(
    State(staff): Staff,
    Path((department, id)): At,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let stored = found(staff.get(point(&department, id)).await?)?;
    let tag = etag::to_header(&Stored::etag(&stored));
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    if known.is_some_and(|known| known.strip_prefix("W/").unwrap_or(known) == tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    Ok(shown(StatusCode::OK, stored))
}

async fn write(
    State(staff): Staff,
    Path((department, id)): At,
    headers: HeaderMap,
    Json(written): Json<Written>,
) -> Result<Response, Problem> {
    let employee = written.at(department, id);
    match etag::expected(&headers)? {
        Expected::Nothing => Ok(shown(StatusCode::CREATED, staff.insert(&employee).await?)),
        Expected::Version(expected) => {
            let current = staff.get(point(&employee.department, id)).await?;
            let mut stored = current_version(current, &expected)?;
            *stored = employee;
            Ok(shown(StatusCode::OK, staff.replace(&stored).await?))
        }
    }
}

async fn remove(
    State(staff): Staff,
    Path((department, id)): At,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let Expected::Version(expected) = etag::expected(&headers)? else {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "expected If-Match"));
    };
    let current = staff.get(point(&department, id)).await?;
    staff.delete(&current_version(current, &expected)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn found(stored: Option<Stored<Employee>>) -> Result<Stored<Employee>, Problem> {
    stored.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "there is no such employee"))
}

/// Returns the employee if it has the expected ETag. The write that follows is under this ETag too, so that a
/// change in between is refused by the store.
fn current_version(
    current: Option<Stored<Employee>>,
    expected: &ETag,
) -> Result<Stored<Employee>, Problem> {
    let stored = found(current)?;
    if Stored::etag(&stored) == *expected {
        Ok(stored)
    } else {
        Err(Problem::new(
            StatusCode::PRECONDITION_FAILED,
            "the employee has changed: read it again",
        ))
    }
}

fn shown(status: StatusCode, stored: Stored<Employee>) -> Response {
    let tag = etag::to_header(&Stored::etag(&stored));
    (status, [(header::ETAG, tag)], Json(Shown::from(stored))).into_response()
}

/// Makes a span of each request, in which the spans of its verbs are. It names the route, without keys.
async fn trace(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str);
    let method = request.method();
    let span = tracing::info_span!("http", %method, route, status = field::Empty);
    let response = next.run(request).instrument(span.clone()).await;
    span.record("status", response.status().as_u16());
    response
}
