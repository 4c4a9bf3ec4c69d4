//! The contract on SQLite and on Postgres. Each part of it is a test of its own on each of them, so that they run beside each other.

use stages_platform_store::Place;
use tempfile::TempDir;

use crate::accounts::hold as accounts_hold;
use crate::connections;
use crate::contract::{
    what_cannot_be_indexed_is_unfit_and_spoils_no_other, what_goes_and_whose_it_is_holds,
    what_is_kept_together_holds, what_is_read_across_the_fleet_holds, what_is_reported_holds,
};
use crate::looked_up;
use crate::postgres::Server;
use crate::runtimes;
use crate::support::on;
use crate::upgraded;

macro_rules! on_both {
    ($($part:ident),+ $(,)?) => {
        mod sqlite {
            use super::*;

            $(
                #[tokio::test]
                async fn $part() {
                    let (folder, mut number) = (TempDir::new().unwrap(), 0);
                    let mut place = async || {
                        number += 1;
                        Place::Sqlite(folder.path().join(format!("{number}.db")))
                    };
                    Box::pin(super::$part(&mut place)).await;
                }
            )+
        }

        mod postgres {
            use super::*;

            $(
                #[tokio::test]
                async fn $part() {
                    let server = Server::start().await;
                    let mut place = async || server.store().await;
                    Box::pin(super::$part(&mut place)).await;
                }
            )+
        }
    };
}

on_both!(
    accounts_hold,
    what_goes_and_whose_it_is_holds,
    what_is_kept_together_holds,
    what_is_read_across_the_fleet_holds,
    what_is_reported_holds,
);

#[tokio::test]
async fn what_is_of_postgres_alone_holds() {
    let server = Server::start().await;
    let url = async || server.database().await;
    Box::pin(connections::a_connection_that_cannot_begin_is_not_used_again(&url().await)).await;
    Box::pin(connections::a_connection_to_a_server_that_takes_nothing_is_not_used_again(&url().await)).await;
    Box::pin(looked_up::no_table_is_read_through_when_it_has_grown(&url().await)).await;
    Box::pin(looked_up::an_entity_is_found_without_reading_those_that_are_called_alike(&url().await)).await;
    Box::pin(looked_up::a_page_of_a_list_reads_no_more_than_it_may_show(&url().await)).await;
    Box::pin(upgraded::since_when_a_resource_is_so_is_taken_over_on_postgres(&url().await)).await;
    let mut english = async || Place::Postgres(server.english_database().await);
    on(&mut english, runtimes::lists_leave_nothing_out_whichever_language_the_database_has).await;
    on(&mut async || Place::Postgres(url().await), what_cannot_be_indexed_is_unfit_and_spoils_no_other).await;
}
